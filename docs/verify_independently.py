#!/usr/bin/env python3
"""Check Affidavit's files with Python's standard library alone.

It shares no code with the product and follows `format.md` and `journal.md` only: records and their ids, answers,
unknowns, bundles and journals. `verify_forms.py` and `format.schema.json` stand beside it. Whoever does not trust the
product reads these lines instead.

    python3 -I -S verify_independently.py FILE...     exit 0 when all hold, 4 when one does not
"""

import hashlib
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from verify_forms import (
    SCHEMA,
    WrongError,
    ascending,
    canonical,
    check_value,
    fit,
    from_base64,
    named,
    need,
    read_canonical,
    sha256,
)

INLINE = 65536
EVENT_LEVELS = 200
ORDER = {"unknown": 0, "partial": 1, "complete": 2}
STRENGTH = {"inferred": 0, "derived": 1, "observed": 2}


# ---- records ----


def record_id(body):
    """The id of a record's canonical bytes."""
    return "ev1_" + hashlib.sha256(b"affidavit/evidence/1\n" + body).hexdigest()


def check_record(shape, notes):
    """A projection and the words beside it."""
    fit(shape, named("record"), "record")
    need(("script" in shape) == (shape["kind"] == "derivation"), "record: only derivations have a script")
    ascending(shape["parents"], "parents")
    ascending(shape["limitations"], "limitations", lambda it: (it["code"], plain(it["place"])))
    [(kind, value)] = shape["outcome"].items()
    size = len(canonical(value).encode()) if kind == "result" else value["size"] if kind == "blob" else 0
    need((kind == "blob") == (size > INLINE), "a large result stands apart, a small one in the record")
    if notes is None:
        return
    fit(notes, named("notes"), "notes")
    words = notes.get("failure", {"message": ""})
    need("failure" not in notes or (kind == "failure" and any(words.values())), "notes of a failure")
    words = notes.get("limitations", [""] * len(shape["limitations"]))
    need(len(words) == len(shape["limitations"]), "notes of limitations")
    need("limitations" not in notes or any(words), "notes of limitations")


def plain(text):
    """A text that may be tagged."""
    return text if isinstance(text, str) else from_base64(text["$text"]).decode("utf-8", "surrogatepass")


def check_result(data):
    """The value of a result that is kept apart."""
    value = read_canonical(data, "a result")
    check_value(value)
    return value


# ---- answers ----


def resolve(pointer, value):
    """The value at a JSON pointer (RFC 6901)."""
    for raw in pointer.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            fine = re.fullmatch("0|[1-9][0-9]{0,15}", token) and int(token) < len(value)
            need(fine, f"{pointer} points at nothing")
            value = value[int(token)]
        else:
            need(isinstance(value, dict) and token in value, f"{pointer} points at nothing")
            value = value[token]
    return value


def texts(value):
    """Every text at and below a value, keys aside."""
    if isinstance(value, str) or (isinstance(value, dict) and [*value] == ["$text"]):
        yield plain(value)
    elif isinstance(value, dict) and [*value] != ["$bytes"]:
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def check_citation(given, result_of):
    """One citation of an answer; the id that it cites. `result_of` gives the result of an id."""
    fit(given, named("citation"), "citation")
    fields = given if isinstance(given, dict) else {"evidence": given}
    evidence, _, pointer = fields["evidence"].partition("#")
    if not pointer and len(fields) == 1:
        result_of(evidence, wanted=False)
        return evidence
    where = fields["evidence"]
    found = resolve(pointer, result_of(evidence, wanted=True))
    if "equals" in fields:
        need(canonical(fields["equals"]) == canonical(found), f"{where} is not {fields['equals']!r:.80}")
    if "count" in fields:
        check_count(fields, found, where)
    if "quote" in fields:
        quote = plain(fields["quote"])
        need(quote and any(quote in text for text in texts(found)), f"the quotation is not in {where}")
    return evidence


def check_count(fields, found, where):
    """How many items stand at a place, or how many of them have some fields."""
    need(
        isinstance(found, list) or (isinstance(found, dict) and "where" not in fields),
        f"{where} has no items",
    )
    items = list(found)
    if "where" in fields:
        wanted = {key: canonical(value) for key, value in fields["where"].items()}
        items = [
            it for it in found
            if isinstance(it, dict) and all(k in it and canonical(it[k]) == v for k, v in wanted.items())
        ]  # fmt: skip
    need(len(items) == fields["count"], f"{where} has {len(items)} items, not {fields['count']}")


def check_answer(shape, records, result_of):
    """What an answer says of the records that it cites."""
    said = fit(shape["parameters"], named("answer"), "answer")
    cited = {check_citation(it, result_of) for it in said["evidence"]}
    need(cited == set(shape["parents"]), "the parents are not the cited records")
    stated = [records[it]["coverage"] for it in cited if records[it]["coverage"] is not None]
    partial = sum(it["state"] != "complete" for it in stated)
    widest = "unknown" if not stated else "partial" if partial else "complete"
    coverage = shape["coverage"]
    need(coverage and ORDER[coverage["state"]] <= ORDER[widest], "coverage is wider than what is cited")
    rest = {
        "selection": "cited records",
        "examined": len(cited),
        "unknown": partial,
        "omitted": 0,
        "bounds": {},
    }
    need({**coverage, **rest} == coverage, "coverage counts")
    inferred = any(records[it]["confidence"] == "inferred" for it in cited)
    need(shape["confidence"] in (("inferred",) if inferred else ("inferred", "derived")), "confidence")
    need(
        (shape["authority"], shape["subject"]) == ("inference", None),
        "an answer is inferred, and of no artifact",
    )
    need(set(shape["outcome"]) <= {"result", "blob"}, "an answer has a value")


def results(records, blobs, where):
    """What gives the result of an id."""

    def result_of(evidence, wanted):
        need(evidence in records, f"{evidence} is not in {where}")
        outcome = records[evidence]["outcome"]
        need(not wanted or "result" in outcome or "blob" in outcome, f"{evidence} has no result")
        blob = outcome.get("blob")
        return outcome.get("result") if blob is None else check_result(blobs[blob["digest"]])

    return result_of


# ---- unknowns ----

SPACE = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"


def check_revision(one):
    """All that a revision says by itself; the id of its unknown."""
    fit(one, named("revision"), "revision")
    what = {name: one[name] for name in ("domain", "question", "scope")}
    name = "unk1_" + hashlib.sha256(b"affidavit/unknown/1\n" + canonical(what).encode()).hexdigest()
    content = {key: value for key, value in one.items() if key not in ("unknown_id", "digest")}
    digest = hashlib.sha256(b"affidavit/unknown-revision/1\n" + canonical(content).encode()).hexdigest()
    need(one["unknown_id"] == name, f"the unknown {one['unknown_id']} has the id {name}")
    need(one["digest"] == "sha256:" + digest, f"revision {one['revision']} of {name} has another digest")
    for words in (one["question"], one["domain"]):
        need(words and re.sub(SPACE, " ", words).strip(" ") == words, f"{name}: white space")
    need(all(it.strip() for it in one["probes"]), f"{name}: white space")
    need(len(set(one["probes"])) == len(one["probes"]), f"{name}: a probe twice")
    for part in ("supports", "contradicts"):
        ascending(one[part], f"{name}: {part}")
    ascending(one["relations"], f"{name}: relations", lambda it: (it["kind"], it["unknown"]))
    need(all(it["unknown"] != name for it in one["relations"]), f"{name} is related to itself")
    need((one["status"] == "resolved") == (one["resolution"] is not None), f"{name}: resolution")
    need(not set(one["supports"]) & set(one["contradicts"]), f"{name}: a record for and against")
    verified = one["resolution"] == "verified"
    need(not verified or (one["supports"] and not one["contradicts"]), f"{name}: verified")
    need((one["previous"] is None) == (one["revision"] == 1), f"{name}: previous")
    return name


def qualifies(one, record):
    """Whether a record can verify an unknown."""
    least, most = one["required_confidence"] or "inferred", STRENGTH[record["confidence"]]
    authority = one["required_authority"] in (None, record["authority"])
    return authority and most >= STRENGTH[least] and "unfinished" not in record["outcome"]


def check_revisions(revisions, records, missing):
    """Chains and references of unknowns; their ids, and the ids that they refer to."""
    chains, referred = {}, set()
    for one in revisions:
        chains.setdefault(check_revision(one), []).append(one)
    for name, chain in chains.items():
        before = None
        chain.sort(key=lambda it: it["revision"])
        for at, one in enumerate(chain, 1):
            need((one["revision"], one["previous"]) == (at, before), f"the chain of {name} at {at}")
            before = one["digest"]
    for one in revisions:
        named_ = [*one["supports"], *one["contradicts"], *(it["unknown"] for it in one["relations"])]
        referred.update(named_)
        lost = [it for it in named_ if it not in records and it not in chains and it not in missing]
        need(not lost, f"{one['unknown_id']} refers to {lost}")
        sound = [it for it in one["supports"] if it not in records or qualifies(one, records[it])]
        need(one["resolution"] != "verified" or sound, f"{one['unknown_id']} is not verified by its records")
    waits = {
        name: {it["unknown"] for it in chain[-1]["relations"] if it["kind"] == "depends-on"} & set(chains)
        for name, chain in chains.items()
    }
    while done := [name for name, on in waits.items() if not on]:
        waits = {name: on - set(done) for name, on in waits.items() if on}
    need(not waits, f"unknowns depend on each other: {sorted(waits)}")
    return set(chains), referred


# ---- bundles ----


def check_bundle(data):
    """A bundle and every answer in it."""
    start = re.match(rb'\{"affidavit":"([^"]{1,30})"', data)
    need(start, "not a bundle")
    need(start[1] == b"bundle/1", f"a bundle of another version: {start[1].decode('ascii', 'replace')}")
    whole = fit(read_canonical(data, "the bundle"), named("bundle"), "$")
    rest = {key: value for key, value in whole.items() if key != "whole"}
    need(whole["whole"] == sha256(canonical(rest).encode()), "$.whole is not the digest of the rest")
    blobs = {address: from_base64(text) for address, text in whole["blobs"].items()}
    for address, content in blobs.items():
        need(sha256(content) == address, f"$.blobs: {address} has the digest {sha256(content)}")
    records = check_entries(whole["records"])
    missing = whole["missing"]
    ascending(missing, "$.missing")
    ascending(whole["unknowns"], "$.unknowns", lambda it: canonical(it).encode())
    chains, referred = check_revisions(whole["unknowns"], records, missing)
    referred |= {parent for shape in records.values() for parent in shape["parents"]}
    need(referred - set(records) - chains == set(missing), "$.missing is not what is missing")
    check_blobs(records, blobs)
    kinds = {it: (shape["kind"], shape["operation"]) for it, shape in records.items()}
    answers = [it for it, kind in kinds.items() if kind == ("derivation", "answer/1")]
    need(whole["answers"] == answers, "$.answers are not the answers among the records")
    for evidence in answers:
        check_answer(records[evidence], records, results(records, blobs, "the bundle"))
    return f"bundle: {len(records)} records, {len(answers)} answers, {len(blobs)} blobs"


def check_entries(entries):
    """The records of a bundle by id, in order."""
    for index, entry in enumerate(entries):
        computed = record_id(canonical(entry["body"]).encode())
        need(entry["id"] == computed, f"$.records[{index}] has the id {computed}")
        if "notes" in entry:
            words = sha256(canonical(entry["notes"]).encode())
            need(entry["notes_digest"] == words, f"$.records[{index}].notes")
        check_record(entry["body"], entry.get("notes"))
    ascending(entries, "$.records", lambda it: it["id"])
    return {entry["id"]: entry["body"] for entry in entries}


def check_blobs(records, blobs):
    """Every result that is kept apart is there, and no other blob but scripts."""
    results = [shape["outcome"]["blob"] for shape in records.values() if "blob" in shape["outcome"]]
    for result in results:
        address, size = result["digest"], result["size"]
        need(address in blobs and len(blobs[address]) == size, f"the result {address} is not there")
        check_result(blobs[address])
    others = (
        set(blobs) - {it["digest"] for it in results} - {shape.get("script") for shape in records.values()}
    )
    need(not others, f"blobs that no record refers to: {sorted(others)}")


# ---- journals ----


LINE = re.compile(
    rb'\{"n":(0|[1-9][0-9]{0,15}),"prev":"([0-9a-f]{64})",(.+),"sum":"([0-9a-f]{64})"\}', re.DOTALL
)


def check_journal(parts):
    """A journal by the bytes of its parts: chain, sums, what lines say, ids and references."""
    story = Story()
    follows = (0, b"0" * 64)
    for story.part, data in enumerate(parts, 1):
        need(data.endswith(b"\n"), f"part {story.part}: the last line is torn")
        offset = 0
        for place, raw in enumerate(data[:-1].split(b"\n"), 1):
            where = f"part {story.part}, line {place}"
            match = LINE.fullmatch(raw)
            need(match, f"{where} is not a line of a journal")
            summed = hashlib.sha256(raw[: -len(b',"sum":""}') - 64]).hexdigest()
            need(summed == match[4].decode(), f"{where} was changed")
            need((int(match[1]), match[2]) == follows, f"{where} does not follow the one before")
            follows = (int(match[1]) + 1, match[4])
            content = read_canonical(b"{" + match[3] + b"}", where)
            need((place == 1) == ("journal" in content), f"{where}: the first line of a part is its head")
            story.tell(content, where, offset)
            offset += len(raw) + 1
        need(story.ended == (story.part < len(parts)), "a part is missing, or one is too many")
    story.check_answers()
    return f"journal: {follows[0]} lines, {len(story.records)} records, {len(story.blobs)} blobs"


class Story:
    """What the lines of a journal said so far, and what a line may say after that."""

    def __init__(self):
        self.part, self.count, self.session = 1, 0, None
        self.ended = self.full = False  # the part goes on in the next one; the bound was reached
        self.records, self.runs, self.calls = {}, set(), Counter()
        self.blobs, self.pieces = {}, {}

    def tell(self, content, where, offset):
        """Take the next line, which begins at this byte of its part."""
        shapes = SCHEMA["$defs"]["lines"]["$defs"]
        kind = " ".join(sorted(content))
        need(kind in shapes, f"{where}: a line of another version: {kind:.60}")
        fit(content, shapes[kind], where)
        need(not self.full, f"{where} stands behind the end")
        need(not self.ended or kind == "journal", f"{where} stands behind the end of the part")
        self.ended = False
        if "record" in content:
            self.keep(content["adds"], content["record"], where)
        said = content.get("event", content.get(kind))
        if said is not None:
            getattr(self, "event" if "event" in content else kind)(said, content, where, offset)

    def keep(self, evidence, kept, where):
        """A record."""
        body = canonical(kept["body"]).encode()
        need(record_id(body) == evidence, f"{where}: the record has the id {record_id(body)}")
        check_record(kept["body"], kept.get("notes"))
        if "blob" in kept["body"]["outcome"]:
            check_result(self.blob_of(kept["body"]["outcome"]["blob"], where))
        self.records[evidence] = kept["body"]

    def check_answers(self):
        """What answers say of the records that they cite, where all of these are here."""
        for evidence, shape in self.records.items():
            answer = (shape["kind"], shape["operation"]) == ("derivation", "answer/1")
            if answer and set(shape["parents"]) <= set(self.records):
                try:
                    check_answer(shape, self.records, results(self.records, self.blobs, "the journal"))
                except WrongError as error:
                    raise WrongError(f"answer {evidence}: {error}") from None

    def blob_of(self, said, where):
        """The bytes of a blob that must be there already."""
        data = self.blobs.get(said["digest"])
        need(data is not None and len(data) == said["size"], f"{where}: {said['digest']} is not before it")
        return data

    def event(self, event, content, where, _):
        """An event, and what must have come before it."""
        kind, run, about, data = event["kind"], event.get("run"), event.get("evidence"), event["data"]
        self.count += 1
        need((content["count"], event["session"]) == (self.count, self.session), f"{where}: count or session")
        need(content.get("adds", about) == about, f"{where}: it adds another record than it is about")
        need(about is None or about in self.records, f"{where}: {about} is not before it")
        canonical(data, EVENT_LEVELS)
        shape = SCHEMA["$defs"]["events"]["$defs"].get(kind)
        if shape is None:
            return  # of a later version: kept as it is
        fit(event, shape, where)
        if kind == "run-requested":
            self.runs.add(run)
        need(run is None or run in self.runs, f"{where}: the run {run} was not requested before it")
        if kind in ("call-started", "call-recorded") and data["call"]:
            self.calls[run, data["call"]] += 1 if kind == "call-started" else -1
            need(self.calls[run, data["call"]] >= 0, f"{where}: the call did not start before it")
        need(
            kind != "call-recorded" or data.get("evidence_id", about) == about,
            f"{where}: another evidence_id",
        )
        for member in shape.get("x-blobs", ()):
            if data.get(member) is not None:
                self.blob_of(data[member], where)
        if kind == "unknown-revised":
            check_revision(data["revision"])
        if kind == "run-settled":
            need("number" in data or data["status"] == "orphaned", f"{where}: a run without a number")

    def journal(self, head, _, where, __):
        """The head of a part."""
        self.session = self.session or head["session"]
        need((head["session"], head["part"]) == (self.session, self.part), f"{where}: session or part")

    def blob(self, piece, _, where, __):
        """A piece of a blob."""
        digest, at = piece["digest"], piece["at"]
        whole = b"" if at == 0 else self.pieces.get(digest, b"")
        need(len(whole) == at, f"{where}: a piece before it is missing")
        whole = self.pieces[digest] = whole + from_base64(piece["data"])
        need(len(whole) <= piece["size"], f"{where}: the blob is too long")
        if len(whole) == piece["size"]:
            need(sha256(whole) == digest, f"{where}: the blob has the digest {sha256(whole)}")
            self.blobs[digest] = self.pieces.pop(digest)

    def loss(self, loss, _, where, offset):
        """Bytes that a killed writer left."""
        need(loss["cut"] == ("digest" in loss) and loss["part"] <= self.part, f"{where}: loss")
        behind = loss["place"] + (0 if loss["cut"] else loss["length"])
        need(loss["part"] < self.part or behind <= offset, f"{where}: a loss behind its line")

    def continued(self, said, _, where, __):
        """The end of a part."""
        self.ended = True
        need(said["part"] == self.part + 1, f"{where}: part")

    def truncated(self, said, _, where, __):
        """The bound was reached."""
        self.full = True
        need(said["count"] == self.count, f"{where}: count")

    def closed(self, said, _, where, __):
        """A writer closed the journal."""
        need(said["count"] == self.count, f"{where}: count")

    def opened(self, *_):
        """Another writer: only its shape matters."""


# ---- files ----

PART = re.compile(r"(.+\.(?:none|[0-9a-f]{12}))(?:\.part([2-9]|[1-9][0-9]{1,5}))?\.jsonl")


def check_file(path):
    """Whatever kind of file it is. Of a journal all parts are read that stand beside it."""
    data = path.read_bytes()
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        seal = b"\x50\x2a\x4d\x18\x20\0\0\0" + hashlib.sha256(data[:-40]).digest()
        need(data[-40:] == seal, "it is packed, and not as it was packed: its last 40 bytes are not its seal")
        need(False, "it is packed: unpack it first, with `zstd -d`")
    if not data.startswith(b'{"n":'):
        return check_bundle(data)
    match = PART.fullmatch(path.name)
    parts = {1: path}
    for other in path.parent.iterdir() if match else ():
        beside = PART.fullmatch(other.name)
        if beside and beside[1] == match[1]:
            parts[int(beside[2] or 1)] = other
    need([*sorted(parts)] == [*range(1, len(parts) + 1)], "a part is missing")
    return check_journal([parts[number].read_bytes() for number in sorted(parts)])


def main(words):
    """Run the command line; its exit code."""
    if not words:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    code = 0
    for word in words:
        try:
            sys.stdout.write(f"{word}: holds: {check_file(Path(word))}\n")
        except (WrongError, RecursionError, OSError) as error:
            sys.stdout.write(f"{word}: DOES NOT HOLD: {error!s:.300}\n")
            code = 4
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
