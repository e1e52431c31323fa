"""Bundles and answers for tests, made without a store."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from affidavit.evidence import unknowns as unknown_revisions
from affidavit.evidence.bundles.document import write_bundle
from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.citations import ANSWER, cited_confidence, cited_coverage, read_citation
from affidavit.evidence.identity import Sealed, record_id, seal
from affidavit.evidence.record import Coverage, Producer, Record, Success
from affidavit.evidence.unknowns import UnknownRevision
from affidavit.evidence.verification import Report, check_bundle

from .records import observation

SCRIPT = b"page = await df.db.app.modules.page()\ndf.answer(status='answered', value=2)\n"
ROWS = [
    {"path": "main.js", "sites": 2, "note": "uses electron to open a window"},
    {"path": "lib/\u00e9t\u00e9.js", "sites": 1, "note": "caf\u00e9"},
    {"path": "worker.js", "sites": 2, "score": {"$float": "1.0"}, "raw": {"$bytes": "AP8="}},
]
COMPLETE = Coverage(state="complete", selection="all files", examined=3)


def page(**changes: Any) -> Record:
    """A page of three rows, completely examined."""
    return observation({"rows": ROWS, "page": {"total": 3}}, **{"coverage": COMPLETE, **changes})


def answer(evidence: list[Any], records: Iterable[Record], **changes: Any) -> Record:
    """A true answer that cites these records."""
    cited = [
        record
        for record in records
        if record_id(record) in {read_citation(it).evidence_id for it in evidence}
    ]
    record = Record(
        kind="derivation",
        operation=ANSWER,
        parameters={
            "status": "answered",
            "evidence": evidence,
            "implicit": False,
            "derivation": "counted",
            "missing": [],
            "reason": "",
        },
        outcome=Success(result=2),
        producer=Producer(name="script", version="1"),
        authority="inference",
        confidence=cited_confidence(cited),
        parents=tuple(sorted({record_id(it) for it in cited})),
        coverage=cited_coverage(cited),
        script=digest(SCRIPT),
    )
    return replace(record, **changes)


def bundle(
    *records: Record,
    scripts: Iterable[bytes] = (),
    unknowns: Iterable[UnknownRevision] = (),
    extra: dict[str, bytes] | None = None,
) -> bytes:
    """The bundle of these records, written as the product does."""
    sealed = {it.id: it for it in map(seal, records)}
    revisions = list(unknowns)
    blobs = {digest(it.spilled): it.spilled for it in sealed.values() if it.spilled is not None}
    blobs |= {digest(script): script for script in scripts} | (extra or {})
    referred = {parent for record in records for parent in record.parents}
    referred |= {it for one in revisions for it in (*one.supports, *one.contradicts)}
    referred |= {it.unknown for one in revisions for it in one.relations}
    known = set(sealed) | {unknown_revisions.unknown_id(one) for one in revisions}
    out = io.BytesIO()
    write_bundle(
        out.write,
        answers=sorted({it.id for it in sealed.values() if it.operation == ANSWER}),
        blobs=sorted(blobs.items()),
        missing=sorted(referred - known),
        records=[sealed[name] for name in sorted(sealed)],
        unknowns=sorted({canonical(unknown_revisions.to_json(one)) for one in revisions}),
    )
    return out.getvalue()


def raw_bundle(
    entries: list[Sealed], answers: list[str], blobs: dict[str, bytes], missing: list[str]
) -> bytes:
    """A bundle of exactly these parts, whether or not they fit."""
    out = io.BytesIO()
    write_bundle(out.write, answers=answers, blobs=sorted(blobs.items()), missing=missing, records=entries)
    return out.getvalue()


def check(data: bytes) -> Report:
    """The report on a bundle's bytes."""
    return check_bundle(io.BytesIO(data))
