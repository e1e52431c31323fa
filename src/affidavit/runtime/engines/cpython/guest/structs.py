"""Values that scripts receive: paged results with attribute access, and results of `df.answer` that may be awaited."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

__all__ = ["Nothing", "Struct", "awaitable", "struct"]


class Struct(dict[str, Any]):
    """A mapping whose keys are attributes as well: `page.rows` and `page["rows"]` are the same."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no key {name!r}; there are: {', '.join([*self.keys()])}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self if key.isidentifier())]


def struct(value: dict[str, Any]) -> Struct:
    """The mapping and those directly in it as `Struct`s; rows deeper down stay plain."""
    whole = Struct(value)
    for key, inner in value.items():
        if type(inner) is dict:
            whole[key] = Struct(cast("dict[str, Any]", inner))
    return whole


class _Awaitable:
    """Makes a finished result awaitable, for those who write `await` out of habit."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self
        yield


class Nothing(_Awaitable):
    """None that may be awaited."""

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Nothing)

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return "None"


class _List(list[Any], _Awaitable):
    __slots__ = ()


class _Dict(Struct, _Awaitable):  # pyright: ignore[reportUnsafeMultipleInheritance]
    __slots__ = ()


class _Text(str, _Awaitable):
    __slots__ = ()


def awaitable(value: Any) -> Any:
    """The value such that it works with and without `await`. Numbers and booleans are left alone."""
    if value is None:
        return Nothing()
    if isinstance(value, list):
        return _List(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        return _Dict(value)  # pyright: ignore[reportUnknownArgumentType]
    return _Text(value) if type(value) is str else value
