"""Reading foreign JSON field by field, each refusal with its path."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from affidavit.errors import UsageError
from affidavit.evidence._paths import path_of, type_of
from affidavit.evidence.record import JsonValue
from affidavit.evidence.values import decode

__all__ = ["Reader"]


class Reader:
    """A value inside a JSON document, with the path that leads to it."""

    __slots__ = ("_steps", "json")

    def __init__(self, json: JsonValue, steps: tuple[Any, ...] = ()) -> None:
        self.json = json
        self._steps = steps

    def refuse(self, expected: str) -> UsageError:
        path = path_of(list(self._steps))
        shown = type_of(self.json).__name__ if type_of(self.json) in (dict, list) else ascii(self.json)[:60]
        return UsageError(
            "value-unsupported", f"expected {expected} at {path}, found {shown}", details={"path": path}
        )

    def members(self) -> dict[str, Reader]:
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
        fields = self.members()
        if len(fields) != 1 or next(iter(fields)) not in names:
            raise self.refuse(f"one field of {', '.join(names)}")
        return fields

    def items(self) -> list[Reader]:
        if type_of(self.json) is not list:
            raise self.refuse("a list")
        values: list[JsonValue] = self.json
        return [Reader(item, (*self._steps, index)) for index, item in enumerate(values)]

    def mapping(self) -> dict[str, JsonValue]:
        if type_of(self.json) is not dict:
            raise self.refuse("an object")
        fields: dict[str, JsonValue] = self.json
        return fields

    def text(self) -> str:
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
        return None if self.json is None else self.text()

    def count(self) -> int:
        if type_of(self.json) is not int or self.json < 0:
            raise self.refuse("a count")
        return self.json

    def choice(self, choices: frozenset[Any]) -> Any:
        if type_of(self.json) in (dict, list) or self.json not in choices:
            raise self.refuse(f"one of {', '.join(sorted(map(str, choices)))}")
        return self.json
