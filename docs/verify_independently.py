#!/usr/bin/env python3
"""Check Affidavit's files with Python's standard library alone.

It shares no code with the product and follows `format.md` only: canonical JSON, ids of records, bundles with their
answers and unknowns, and journals. Whoever does not trust the product reads these lines instead.

    python3 -I -S verify_independently.py FILE...     exit 0 when all hold, 4 when one does not
"""

import base64
import binascii
import hashlib
import json
import re
import sys
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from uuid import UUID

SAFE = 2**53 - 1
INLINE = 65536
ID = re.compile(r"ev1_[0-9a-f]{64}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CITED = re.compile(r"(ev1_[0-9a-f]{64})(?:#((?:/.*)?))?", re.DOTALL)
ORDER = {"unknown": 0, "partial": 1, "complete": 2}
RECORD_FIELDS = {
    "authority", "confidence", "coverage", "kind", "limitations", "operation", "outcome", "parameters", "parents",
    "producer", "subject",
}  # fmt: skip
AUTHORITIES = {
    "artifact-bytes", "static-analysis", "inference", "recorded-traffic", "live-source", "imported", "analyst",
}  # fmt: skip
UNKNOWN_FIELDS = {
    "question", "domain", "scope", "revision", "previous", "severity", "status", "resolution", "supports",
    "contradicts", "required_authority", "required_confidence", "relations", "probes", "note", "unknown_id", "digest",
}  # fmt: skip


class WrongError(Exception):
    """Something does not hold; the text says where and what."""


def need(condition, text):
    """Raise `WrongError` unless the condition holds."""
    if not condition:
        raise WrongError(text)


# ---- canonical JSON: RFC 8785 ----


def canonical(value):
    """The canonical text of a JSON value."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        need(abs(value) <= SAFE, f"the integer {value} is beyond 2**53 - 1")
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    need(isinstance(value, dict), f"{type(value).__name__} is not JSON")
    keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(quoted(key) + ":" + canonical(value[key]) for key in keys) + "}"


def quoted(text):
    """A text in quotes, with no more escapes than JSON demands."""
    need(not re.search("[\ud800-\udfff]", text), "a lone surrogate")
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return '"' + re.sub(r'["\\\x00-\x1f]', lambda it: short.get(it[0]) or f"\\u{ord(it[0]):04x}", text) + '"'


def number(value):
    """A double as ECMAScript writes it: the shortest digits that read back, in its layout."""
    need(value - value == 0, "not a finite number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    shown = f"e{'+' if power >= 0 else '-'}{abs(power)}"
    return sign + digits[0] + ("." + digits[1:] if count > 1 else "") + shown


def read(data):
    """Parse JSON bytes strictly: UTF-8, no key twice, no NaN."""

    def pairs(items):
        need(len(dict(items)) == len(items), "a key stands twice in one object")
        return dict(items)

    def constant(name):
        raise WrongError(f"{name} is not JSON")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise WrongError(f"not JSON: {error}") from None


def read_canonical(data, what):
    """Parse JSON bytes that must be canonical."""
    value = read(data)
    need(canonical(value).encode() == data, f"{what} is not in the canonical form")
    return value


def sha256(data):
    """The address of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def from_base64(text):
    """Bytes from base64 in its one spelling."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WrongError(f"not base64: {error}") from None
    need(base64.b64encode(data).decode() == text, "base64 with stray bits")
    return data


# ---- tagged values ----


def spelt(tag, text):
    """How a tag must be spelt for the value that its text stands for."""
    if tag == "$int":
        value = Decimal(text)
        need(value == value.to_integral_value() and abs(value) > SAFE, "an integer that needs no tag")
        return str(int(text)) if len(text) < 4000 else text
    if tag == "$float":
        value = float(text)
        need(value - value != 0 or value.is_integer(), "a float that needs no tag")
        return repr(value)
    if tag == "$bytes":
        from_base64(text)
        return text
    if tag == "$text":
        value = from_base64(text).decode("utf-8", "surrogatepass")
        need(re.search("[\ud800-\udfff]", value), "a text that needs no tag")
        return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    kinds = {"$decimal": Decimal, "$uuid": UUID, "$date": date.fromisoformat}
    if tag == "$datetime":
        return datetime.fromisoformat(text).isoformat()
    return str(kinds[tag](text))


TAGS = ("$int", "$float", "$bytes", "$text", "$datetime", "$date", "$decimal", "$uuid")


def check_value(value):
    """Every tag in a value must be known, stand alone, and have its one spelling."""
    if isinstance(value, list):
        for item in value:
            check_value(item)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if len(value) == 1 and key in TAGS:
            try:
                need(isinstance(item, str) and spelt(key, item) == item, f"a malformed {key} tag")
            except (ValueError, InvalidOperation, OverflowError):
                raise WrongError(f"a malformed {key} tag") from None
            return
        if key.startswith("$text:"):
            spelt("$text", key[6:])
        else:
            need(not key.startswith("$") or key.startswith("$$"), f"an unknown tag {key}")
        check_value(item)


# ---- records ----


def record_id(body):
    """The id of a record's canonical bytes."""
    return "ev1_" + hashlib.sha256(b"affidavit/evidence/1\n" + body).hexdigest()


def check_record(shape, notes):
    """The fields of a projection."""
    need(isinstance(shape, dict), "a record is an object")
    wanted = RECORD_FIELDS | ({"script"} if shape.get("kind") == "derivation" else set())
    need(set(shape) == wanted, f"fields of a record: {sorted(set(shape) ^ wanted)}")
    need(shape["kind"] in ("observation", "derivation", "assertion"), "kind")
    need(shape["authority"] in AUTHORITIES, "authority")
    need(shape["confidence"] in ("observed", "derived", "inferred"), "confidence")
    need(all(ID.fullmatch(it) for it in shape["parents"]), "parents")
    need(shape["parents"] == sorted(set(shape["parents"])), "parents are not ascending")
    need(set(shape["producer"]) == {"name", "version"}, "producer")
    if shape["subject"] is not None:
        need(
            set(shape["subject"]) == {"digest", "format"} and DIGEST.fullmatch(shape["subject"]["digest"]),
            "subject",
        )
    check_outcome(shape["outcome"])
    if shape["coverage"] is not None:
        fields = {"state", "selection", "examined", "omitted", "unknown", "bounds"}
        need(set(shape["coverage"]) == fields and shape["coverage"]["state"] in ORDER, "coverage")
    need(all(set(it) == {"code", "place"} for it in shape["limitations"]), "limitations")
    need(notes is None or set(notes) <= {"failure", "limitations"}, "notes")


def check_outcome(outcome):
    """Exactly one end of a call."""
    [(kind, value)] = outcome.items()
    if kind == "result":
        need(len(canonical(value).encode()) <= INLINE, "a large result stands inline")
    elif kind == "blob":
        need(set(value) == {"digest", "size"} and DIGEST.fullmatch(value["digest"]), "blob")
        need(value["size"] > INLINE, "a small result stands apart")
    elif kind == "failure":
        need(set(value) == {"code", "details"}, "failure")
    else:
        need((kind, value) == ("unfinished", True), "outcome")


# ---- answers ----


def resolve(pointer, value):
    """The value at a JSON pointer (RFC 6901)."""
    need(not re.search("~(?![01])", pointer), "not a JSON pointer")
    for raw in pointer.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            fits = re.fullmatch("0|[1-9][0-9]{0,15}", token) and int(token) < len(value)
            need(fits, f"{pointer} points at nothing")
            value = value[int(token)]
        else:
            need(isinstance(value, dict) and token in value, f"{pointer} points at nothing")
            value = value[token]
    return value


def texts(value):
    """Every text below a value, keys aside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and set(value) == {"$text"}:
        yield from_base64(value["$text"]).decode("utf-8", "surrogatepass")
    elif isinstance(value, dict) and set(value) != {"$bytes"}:
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def check_citation(given, results):
    """One citation of an answer; the id that it cites. `results` gives the result of an id."""
    fields = given if isinstance(given, dict) else {"evidence": given}
    need(set(fields) <= {"evidence", "equals", "count", "where", "quote"}, "fields of a citation")
    need(len(fields) > 1 or not isinstance(given, dict), "a citation that states nothing")
    need(isinstance(fields.get("evidence"), str), "a citation without an id")
    match = CITED.fullmatch(fields["evidence"])
    need(match, "not an evidence id")
    if not match[2] and len(fields) == 1:
        results(match[1], False)
        return match[1]
    found = resolve(match[2] or "", results(match[1], True))
    if "equals" in fields:
        need(canonical(fields["equals"]) == canonical(found), f"{match[0]} is not {fields['equals']!r:.80}")
    if "count" in fields:
        check_count(fields, found, match[0])
    if "quote" in fields:
        [quote] = texts(fields["quote"])
        need(quote and any(quote in text for text in texts(found)), f"the quotation is not in {match[0]}")
    return match[1]


def check_count(fields, found, place):
    """How many items stand at a place, or how many of them have some fields."""
    need(type(fields["count"]) is int and isinstance(found, list | dict), f"{place} has no items")
    items = list(found)
    if "where" in fields:
        need(isinstance(found, list), f"{place} is not a list")
        wanted = {key: canonical(value) for key, value in fields["where"].items()}
        items = [
            it for it in found
            if isinstance(it, dict) and all(k in it and canonical(it[k]) == v for k, v in wanted.items())
        ]  # fmt: skip
    need(len(items) == fields["count"], f"{place} has {len(items)} items, not {fields['count']}")


def check_answer(shape, records, results):
    """What an answer says of the records that it cites."""
    fields = {"status", "evidence", "implicit", "derivation", "missing", "reason"}
    parameters = shape["parameters"]
    need(set(parameters) == fields, "fields of an answer")
    need(parameters["status"] in ("answered", "partial", "unsupported"), "status")
    cited = {check_citation(it, results) for it in parameters["evidence"]}
    need(cited == set(shape["parents"]), "the parents are not the cited records")
    stated = [records[it]["coverage"] for it in cited if records[it]["coverage"] is not None]
    partial = sum(it["state"] != "complete" for it in stated)
    widest = "unknown" if not stated else "partial" if partial else "complete"
    coverage = shape["coverage"]
    need(
        coverage is not None and ORDER[coverage["state"]] <= ORDER[widest],
        "coverage is wider than what is cited",
    )
    need((coverage["examined"], coverage["unknown"]) == (len(cited), partial), "coverage counts")
    inferred = any(records[it]["confidence"] == "inferred" for it in cited)
    need(shape["confidence"] in (("inferred",) if inferred else ("inferred", "derived")), "confidence")


# ---- unknowns ----


def check_revisions(revisions, ids, missing):
    """Ids, digests, chains and references of unknowns; gives their ids."""
    chains = {}
    for one in revisions:
        need(set(one) == UNKNOWN_FIELDS, "fields of a revision")
        what = {name: one[name] for name in ("domain", "question", "scope")}
        name = "unk1_" + hashlib.sha256(b"affidavit/unknown/1\n" + canonical(what).encode()).hexdigest()
        content = {key: value for key, value in one.items() if key not in ("unknown_id", "digest")}
        digest = hashlib.sha256(b"affidavit/unknown-revision/1\n" + canonical(content).encode()).hexdigest()
        need(one["unknown_id"] == name, f"the unknown {one['unknown_id']} has the id {name}")
        need(one["digest"] == "sha256:" + digest, f"revision {one['revision']} of {name} has another digest")
        need((one["status"] == "resolved") == (one["resolution"] is not None), f"resolution of {name}")
        need(set(one["supports"]) & set(one["contradicts"]) == set(), f"{name}: a record for and against")
        need(
            (*one["supports"], *one["contradicts"])
            == (*dict.fromkeys(one["supports"] + one["contradicts"]),),
            name,
        )
        chains.setdefault(name, []).append(one)
    for name, chain in chains.items():
        before = None
        for number_, one in enumerate(sorted(chain, key=lambda it: it["revision"]), 1):
            need(
                one["revision"] == number_ and one["previous"] == before, f"the chain of {name} at {number_}"
            )
            before = one["digest"]
    for one in revisions:
        named = [*one["supports"], *one["contradicts"], *(it["unknown"] for it in one["relations"])]
        need(
            all(it in ids or it in chains or it in missing for it in named),
            f"a reference of {one['unknown_id']}",
        )
    return set(chains), {it for one in revisions for it in (*one["supports"], *one["contradicts"])} | {
        it["unknown"] for one in revisions for it in one["relations"]
    }


# ---- bundles ----


def check_bundle(data):
    """A bundle and every answer in it."""
    start = re.match(rb'\{"affidavit":"([^"]{1,30})"', data)
    need(start, "not a bundle")
    need(start[1] == b"bundle/1", f"a bundle of another version: {start[1].decode('ascii', 'replace')}")
    whole = read_canonical(data, "the bundle")
    need(set(whole) == {"affidavit", "answers", "blobs", "missing", "records", "unknowns", "whole"}, "fields")
    rest = {key: value for key, value in whole.items() if key != "whole"}
    need(whole["whole"] == sha256(canonical(rest).encode()), "$.whole is not the digest of the rest")
    blobs = {address: from_base64(text) for address, text in whole["blobs"].items()}
    for address, content in blobs.items():
        need(sha256(content) == address, f"$.blobs: {address} has the digest {sha256(content)}")
    records = check_entries(whole["records"])
    missing = whole["missing"]
    need(missing == sorted(set(missing)), "$.missing is not ascending")
    spelt_ = [canonical(it) for it in whole["unknowns"]]
    need(spelt_ == sorted(set(spelt_), key=str.encode), "$.unknowns is not ascending")
    chains, referred = check_revisions(whole["unknowns"], records, missing)
    referred |= {parent for shape in records.values() for parent in shape["parents"]}
    need(referred - set(records) - chains == set(missing), "$.missing is not what is missing")
    check_blobs(records, blobs)
    answers = [
        it
        for it, shape in records.items()
        if (shape["kind"], shape["operation"]) == ("derivation", "answer/1")
    ]
    need(whole["answers"] == answers, "$.answers are not the answers among the records")

    def results(evidence_id, wanted):
        need(evidence_id in records, f"{evidence_id} is not in the bundle")
        outcome = records[evidence_id]["outcome"]
        need(not wanted or "result" in outcome or "blob" in outcome, f"{evidence_id} has no result")
        blob = outcome.get("blob")
        return outcome.get("result") if blob is None else read_canonical(blobs[blob["digest"]], "a result")

    for evidence_id in answers:
        check_answer(records[evidence_id], records, results)
    return f"bundle: {len(records)} records, {len(answers)} answers, {len(blobs)} blobs"


def check_entries(entries):
    """The records of a bundle by id, in order."""
    records = {}
    for index, entry in enumerate(entries):
        need(
            set(entry) in ({"body", "id"}, {"body", "id", "notes", "notes_digest"}),
            f"$.records[{index}]: fields",
        )
        computed = record_id(canonical(entry["body"]).encode())
        need(entry["id"] == computed, f"$.records[{index}] has the id {computed}")
        if "notes" in entry:
            need(
                entry["notes_digest"] == sha256(canonical(entry["notes"]).encode()),
                f"$.records[{index}].notes",
            )
        check_record(entry["body"], entry.get("notes"))
        records[computed] = entry["body"]
    need([it["id"] for it in entries] == sorted(records), "$.records are not ascending")
    return records


def check_blobs(records, blobs):
    """Every result that is kept apart is there, and no other blob but scripts."""
    scripts = {shape.get("script") for shape in records.values()}
    wanted = {}
    for shape in records.values():
        if "blob" in shape["outcome"]:
            wanted[shape["outcome"]["blob"]["digest"]] = shape["outcome"]["blob"]["size"]
    for address, size in wanted.items():
        need(address in blobs and len(blobs[address]) == size, f"the result {address} is not there")
    need(set(blobs) - set(wanted) <= scripts, "a blob that no record refers to")


# ---- journals ----

LINE = re.compile(rb'\{"n":(0|[1-9][0-9]*),"prev":"([0-9a-f]{64})",(.+),"sum":"([0-9a-f]{64})"\}', re.DOTALL)


def check_journal(data):
    """One part of a journal: chain, sums, ids and references."""
    need(data.endswith(b"\n"), "the last line is torn")
    lines = data[:-1].split(b"\n")
    records, blobs, pieces = set(), set(), {}
    before = None
    for place, raw in enumerate(lines, 1):
        match = LINE.fullmatch(raw)
        need(match, f"line {place} is not a line of a journal")
        need(
            hashlib.sha256(raw[: -len(b',"sum":""}') - 64]).hexdigest() == match[4].decode(),
            f"line {place} was changed",
        )
        follows = before is None or (int(match[1]), match[2]) == before
        need(
            follows and (int(match[1]) > 0 or match[2] == b"0" * 64),
            f"line {place} does not follow the one before",
        )
        before = (int(match[1]) + 1, match[4])
        content = read_canonical(b"{" + match[3] + b"}", f"line {place}")
        if place == 1:
            head = content.get("journal", {})
            need(
                (head.get("format"), head.get("version")) == ("affidavit-journal", 1),
                "another format or version",
            )
        check_line(content, place, records, blobs, pieces)
    return f"journal: {len(lines)} lines, {len(records)} records, {len(blobs)} blobs"


def check_line(content, place, records, blobs, pieces):
    """The record, blob or event of a line."""
    if "record" in content:
        body = canonical(content["record"]["body"]).encode()
        need(record_id(body) == content["adds"], f"line {place}: the record has the id {record_id(body)}")
        check_record(content["record"]["body"], content["record"].get("notes"))
        records.add(content["adds"])
    if "blob" in content:
        piece = content["blob"]
        whole = (b"" if piece["at"] == 0 else pieces.get(piece["digest"], b"")) + from_base64(piece["data"])
        pieces[piece["digest"]] = whole
        if len(whole) == piece["size"]:
            need(sha256(whole) == piece["digest"], f"line {place}: the blob has the digest {sha256(whole)}")
            blobs.add(piece["digest"])
    about = content.get("event", {}).get("evidence")
    need(about is None or about in records, f"line {place}: {about} is not before it")


def check_file(path):
    """Whatever kind of file it is."""
    data = path.read_bytes()
    return check_journal(data) if data.startswith(b'{"n":') else check_bundle(data)


def main(words):
    """Run the command line; its exit code."""
    if not words:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    code = 0
    for name in words:
        try:
            sys.stdout.write(f"{name}: holds: {check_file(Path(name))}\n")
        except (WrongError, LookupError, TypeError, ValueError, AttributeError) as error:
            sys.stdout.write(f"{name}: DOES NOT HOLD: {error!s:.300}\n")
            code = 4
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
