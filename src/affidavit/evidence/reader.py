"""Reading foreign JSON field by field, each refusal with its path."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from affidavit.errors import UsageError
from affidavit.evidence._paths import path_of, type_of
from affidavit.evidence.record import JsonValue
from affidavit.evidence.values import check_encoded, decode

__all__ = ["Reader"]

_ID: Final = re.compile(r"ev1_[0-9a-f]{64}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class Reader:
    """A value inside a JSON document, with the path that leads to it.

    Each method gives the value as what it is asked for, or raises UsageError `value-unsupported` with the path.
    """

    __slots__ = ("_steps", "json")

    def __init__(self, json: JsonValue, steps: tuple[Any, ...] = ()) -> None:
        self.json = json
        self._steps = steps

    def refuse(self, expected: str) -> UsageError:
        """The refusal of this value: what should stand here."""
        path = path_of(list(self._steps))
        shown = type_of(self.json).__name__ if type_of(self.json) in (dict, list) else ascii(self.json)[:60]
        return UsageError(
            "value-unsupported", f"expected {expected} at {path}, found {shown}", details={"path": path}
        )

    def members(self) -> dict[str, Reader]:
        """The members of an object."""
        return {key: Reader(item, (*self._steps, key)) for key, item in self.mapping().items()}

    def object(self, *, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Reader]:
        """The fields of an object that has all the required ones and no others than the optional ones."""
        fields = self.members()
        missing = [name for name in required if name not in fields]
        if missing:
            raise self.refuse(f"a field {missing[0]!r}")
        for name, field in fields.items():
            if name not in required and name not in optional:
                raise field.refuse("no such field")
        return fields

    def one_of(self, names: Collection[str]) -> dict[str, Reader]:
        """The one member of an object, which has one of these names."""
        fields = self.members()
        if len(fields) != 1 or next(iter(fields)) not in names:
            raise self.refuse(f"one field of {', '.join(names)}")
        return fields

    def items(self) -> list[Reader]:
        """The items of a list."""
        if type_of(self.json) is not list:
            raise self.refuse("a list")
        values: list[JsonValue] = self.json
        return [Reader(item, (*self._steps, index)) for index, item in enumerate(values)]

    def mapping(self) -> dict[str, JsonValue]:
        """The object itself."""
        if type_of(self.json) is not dict:
            raise self.refuse("an object")
        fields: dict[str, JsonValue] = self.json
        return fields

    def text(self) -> str:
        """A text."""
        if type_of(self.json) is not str:
            raise self.refuse("text")
        return self.json

    def encoded_text(self) -> str:
        """Text that may be tagged, because it has lone surrogates."""
        try:
            value = decode(self.json)
        except UsageError:
            value = None
        return Reader(value, self._steps).text()

    def optional_text(self) -> str | None:
        """A text or null."""
        return None if self.json is None else self.text()

    def count(self) -> int:
        """A whole number from 0."""
        if type_of(self.json) is not int or self.json < 0:
            raise self.refuse("a count")
        return self.json

    def number(self) -> float:
        """A number."""
        if type_of(self.json) not in (int, float):
            raise self.refuse("a number")
        return self.json

    def flag(self) -> bool:
        """True or false."""
        if type_of(self.json) is not bool:
            raise self.refuse("true or false")
        return self.json

    def digest(self) -> str:
        """The digest of bytes."""
        if type_of(self.json) is not str or not _DIGEST.fullmatch(self.json):
            raise self.refuse("sha256: and 64 digits")
        return self.json

    def evidence_id(self) -> str:
        """The id of a record."""
        if type_of(self.json) is not str or not _ID.fullmatch(self.json):
            raise self.refuse("ev1_ and 64 digits")
        return self.json

    def value(self) -> JsonValue:
        """The one encoding of a value (`values`)."""
        check_encoded(self.json, *self._steps)
        return self.json

    def choice(self, choices: frozenset[Any]) -> Any:
        """One of some scalars."""
        if type_of(self.json) in (dict, list) or self.json not in choices:
            raise self.refuse(f"one of {', '.join(sorted(map(str, choices)))}")
        return self.json
