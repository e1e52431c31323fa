"""Functions with every kind of annotation, as a mounted module would have them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import threading
import typing
import uuid
from typing import Annotated, Any, Literal

import pydantic
import typing_extensions

from affidavit.errors import NotFoundError
from affidavit.namespaces.functions import operation
from affidavit.namespaces.operation import Reply


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(typing.TypedDict):
    """A node that holds itself, of the `typing` kind that pydantic refuses on Python 3.11."""

    name: str
    children: typing.NotRequired[list[Tree]]


class Options(typing_extensions.TypedDict, total=False):
    deep: bool


@dataclasses.dataclass
class Order:
    id: int
    total: decimal.Decimal
    when: dt.datetime | None = None


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(alias="full-name", min_length=2)
    tags: list[str] = []


class Loose(pydantic.BaseModel, extra="allow"):
    a: int = 0


async def forecast(
    city: str, days: Annotated[int, pydantic.Field(ge=1, le=9)] = 3, *, exact: bool = False
) -> str:
    """The weather to come.

    Longer words about it.

    Args:
        city: Where, by its
            usual name.
        days: How many, from today.

    Returns:
        A sentence.
    """
    return f"{city} {days} {exact}"


def take(
    *,
    anything: Any = None,
    whatever: Any = None,
    text: str = "",
    number: int = 0,
    real: float = 0.0,
    flag: bool = False,
    nothing: None = None,
    maybe: int | None = None,
    either: int | str = 0,
    some: list[int] = [],  # noqa: B006
    pair: tuple[int, str] = (0, ""),
    bag: set[str] = set(),  # noqa: B006
    table: dict[str, int] = {},  # noqa: B006
    choice: Literal["a", "b", 3] = "a",
    colour: Colour = Colour.RED,
    tree: Tree | None = None,
    trees: list[Tree] = [],  # noqa: B006
    options: Options = {},  # noqa: B006
    order: Order | None = None,
    person: Person | None = None,
    loose: Loose | None = None,
    raw: bytes = b"",
    day: dt.date | None = None,
    moment: dt.datetime | None = None,
    span: dt.timedelta | None = None,
    ident: uuid.UUID | None = None,
    price: decimal.Decimal = decimal.Decimal(0),
    short: Annotated[str, pydantic.Field(max_length=3)] = "",
    lookup: Annotated[str, pydantic.AfterValidator(lambda value: value.upper())] = "",
) -> dict[str, str]:
    """Say what arrived and of which types."""
    return {key: repr(value) for key, value in locals().items()}


def order(id: int) -> Order:  # noqa: A002
    return Order(id=id, total=decimal.Decimal("1.10"), when=dt.datetime(2024, 2, 29, 12, 0))


def person() -> Person:
    return Person.model_validate({"full-name": "Ada"})


def untyped(value: Any = None) -> Any:
    return value


# functions without annotations, which the strict check of this file would not let stand
untyped.__annotations__.clear()
del take.__annotations__["anything"]


def answer(what: str) -> Any:
    results: dict[str, Any] = {
        "decimal": decimal.Decimal("1.5"),
        "model": Person.model_validate({"full-name": "Ada"}),
        "bytes": b"\xff",
        "none": None,
    }
    return results[what]


def positional(first: int, second: str = "x", /, third: float = 1.0, *, fourth: bool = True) -> list[str]:
    return [repr(one) for one in (first, second, third, fourth)]


def names(from_: str = "", class_: str = "", self_: str = "") -> str:
    return from_ + class_ + self_


def wrong_type() -> int:
    return "text"  # pyright: ignore[reportReturnType]


def as_text() -> str:
    return decimal.Decimal("1.10")  # pyright: ignore[reportReturnType]


def binary(raw: bytes) -> bytes:
    return raw[::-1]


def boom(text: str) -> None:
    raise ValueError(text)


def silent() -> None:
    raise KeyError


def refuses() -> None:
    raise NotFoundError("item-not-found", "no such thing", hint="look elsewhere", details={"id": "x"})


@operation(name="who-runs", effect="external", version=4, blocking=True)
def thread() -> str:
    """Which thread runs this."""
    return threading.current_thread().name


def here() -> str:
    return threading.current_thread().name


def own_reply() -> Reply:
    return Reply(value={"n": 1}, normalised={"seen": True})


def star(*values: int) -> int:
    return sum(values)


def options(**values: int) -> int:
    return sum(values.values())


def unreadable(value: int) -> None:
    return None


unreadable.__annotations__["value"] = "Missing"


def no_json(value: threading.Thread) -> None:
    return None


half = functools.partial(positional, 1)


class Adder:
    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, n: int) -> int:
        """Add to the start."""
        return self.start + n

    async def __call__(self, n: int) -> int:
        return self.start + n
