"""`where`: which rows are asked for, checked and brought into one normal form.

Equality per field; a list means any of; None means unknown. Fields are sorted, lists lose duplicates and are sorted,
and a list of one value is that value, so equal questions have equal parameters and thus equal evidence ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue
from affidavit.facts.spec import FieldType, Scalar

__all__ = ["MAX_ALTERNATIVES", "Selector", "check_field", "order", "read_selector"]

MAX_ALTERNATIVES = 1000
"""How many values one field may list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A normalised `where`: fields in order of their names, each with the values that match, in `order`.

    A field with no values matches nothing; no fields match everything.
    """

    terms: tuple[tuple[str, tuple[Scalar, ...]], ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        """The normal form as a `where` argument."""
        return {name: found[0] if len(found) == 1 else list(found) for name, found in self.terms}


def read_selector(where: object, fields: Mapping[str, FieldType], collection: str) -> Selector:
    """Check and normalise a `where` argument.

    Args:
        where: what the caller gave; None selects everything.
        fields: the fields that can be asked for.
        collection: the collection's contract prefix, for messages.

    Raises:
        UsageError: `selector-invalid`; `details.path` names the place.
    """
    if where is None:
        return Selector()
    if not isinstance(where, Mapping):
        raise _invalid(
            f"`where` of {collection} is {_named(where)}, not a mapping of fields to values",
            hint='write where={"field": value}',
            path="$",
        )
    given = cast(Mapping[object, object], where)
    terms: list[tuple[str, tuple[Scalar, ...]]] = []
    for name, wanted in given.items():
        kind = check_field(name, fields, collection, argument="where")
        terms.append((cast(str, name), _alternatives(cast(str, name), wanted, kind, collection)))
    return Selector(terms=tuple(sorted(terms)))


def check_field(
    name: object, fields: Mapping[str, FieldType], collection: str, *, argument: str
) -> FieldType:
    """The type of a field that a caller named.

    Raises:
        UsageError: `selector-invalid`: the collection cannot be asked for this field.
    """
    if isinstance(name, str) and name in fields:
        return fields[name]
    raise _invalid(
        f"{collection} has no field {_shown(name)} for `{argument}`",
        hint=_instead(name, fields, "fields"),
        path=_path(name) if argument == "where" else "$",
    )


def order(value: Scalar) -> tuple[int, int | str]:
    """Sort key over all field values: unknown, booleans, integers, then text by code point."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, int):
        return (2, value)
    return (3, value)


def _alternatives(name: str, wanted: object, kind: FieldType, collection: str) -> tuple[Scalar, ...]:
    place = _path(name)
    if not isinstance(wanted, (list, tuple)):
        return (_value(place, wanted, kind, collection),)
    listed = cast(Sequence[object], wanted)
    if len(listed) > MAX_ALTERNATIVES:
        raise _invalid(
            f"field {name!r} of {collection} lists {len(listed)} values, more than {MAX_ALTERNATIVES}",
            hint=f"ask in parts of {MAX_ALTERNATIVES}",
            path=place,
        )
    checked = [_value(f"{place}[{at}]", value, kind, collection) for at, value in enumerate(listed)]
    # Fields of two types may hold True and 1, which Python takes for equal: keep them apart by type.
    unique = {order(value): value for value in checked}
    return tuple(unique[key] for key in sorted(unique))


def _value(place: str, value: object, kind: FieldType, collection: str) -> Scalar:
    if value is None:
        return None
    if type(value) not in kind.types:
        expected = " or ".join([one.__name__ for one in kind.types] + ["None"])
        raise _invalid(
            f"{place.removeprefix('$.')} of {collection} is {_named(value)}, not {expected}",
            hint=f"give {expected}, or a list of these for any of them",
            path=place,
        )
    scalar = cast("str | int | bool", value)
    if kind.choices is not None and scalar not in kind.choices:
        raise _invalid(
            f"{place.removeprefix('$.')} of {collection} is never {_shown(scalar)}",
            hint=_instead(scalar, kind.choices, "values"),
            path=place,
        )
    return scalar


def _instead(name: object, known: Any, what: str) -> str:
    names = [str(one) for one in known]
    close = get_close_matches(str(name)[:100], names, n=1, cutoff=0.5)
    listed = f"{what}: {', '.join(names)}" if names else f"it has no {what} to ask for"
    return f"did you mean {close[0]!r}? {listed}" if close else listed


def _path(name: object) -> str:
    plain = isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= 80
    return f"$.{name}" if plain else f"$[{_shown(name)}]"


def _named(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _shown(value: object) -> str:
    text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _invalid(message: str, *, hint: str, path: str) -> UsageError:
    return UsageError("selector-invalid", message, hint=hint, details={"path": path})
