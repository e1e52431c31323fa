"""What operations that declare no result were seen to return: told in their documentation, never held against a script.

An observed type says what came back so far. A later reply may be wider, so scripts are checked as if nothing were
known; each reply that is recorded widens what is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from affidavit.errors import AffidavitError
from affidavit.evidence import values
from affidavit.evidence.canonical import canonical
from affidavit.evidence.record import BlobRef, JsonValue, Success
from affidavit.namespaces.infer import infer
from affidavit.namespaces.names import class_name
from affidavit.namespaces.operation import Namespace, Operation
from affidavit.store.records import Evidence

__all__ = ["Seen", "is_untyped", "observed", "seen_lately"]

NEWEST: Final = 500
"""How many of the newest records are looked through."""

_EACH: Final = 20
_EXAMPLE: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One recorded reply: its evidence id, and its value as encoded JSON."""

    evidence_id: str
    value: JsonValue


def seen_lately(evidence: Evidence) -> dict[str, list[Seen]]:
    """The newest recorded replies by contract name, newest first; large ones are left out."""
    found: dict[str, list[Seen]] = {}
    for evidence_id, record in evidence.list(limit=NEWEST):
        if record.kind != "observation" or not isinstance(record.outcome, Success):
            continue
        known = found.setdefault(record.operation, [])
        if len(known) < _EACH and not isinstance(record.outcome.result, BlobRef):
            known.append(Seen(evidence_id=evidence_id, value=record.outcome.result))
    return found


def observed(namespace: Namespace, seen: Mapping[str, Sequence[Seen]]) -> Namespace:
    """The namespace, in which operations that declare no result tell what they were seen to return."""
    return replace(
        namespace,
        operations={
            name: _told(operation, seen.get(operation.contract, ()))
            for name, operation in namespace.operations.items()
        },
        children={name: observed(child, seen) for name, child in namespace.children.items()},
    )


def is_untyped(namespace: Namespace) -> bool:
    """Whether any operation declares no result."""
    untyped = any(it.output_schema is None for it in namespace.operations.values())
    return untyped or any(is_untyped(child) for child in namespace.children.values())


def _told(operation: Operation, seen: Sequence[Seen]) -> Operation:
    if operation.output_schema is not None or not seen:
        return operation
    try:
        replies: list[Any] = [values.decode(one.value) for one in seen]
        inferred = infer(replies, name=class_name(operation.name) + "Reply")
    except (AffidavitError, RecursionError):
        return operation
    # the type of a list of all replies is that of a reply in `list[...]`
    annotation = inferred.annotation.removeprefix("list[").removesuffix("]")
    example = canonical(seen[0].value).decode()
    if len(example) > _EXAMPLE:
        example = f"{example[:_EXAMPLE]}... ({len(example)} characters)"
    words = [
        f"It declares no result. Observed in {len(seen)} recorded replies, and not promised: {annotation}",
        *inferred.declarations,
        f"Example, of {seen[0].evidence_id[:16]}: {example}",
    ]
    return replace(operation, doc="\n\n".join([operation.doc, "\n".join(words)]).strip())
