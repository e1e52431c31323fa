"""Options of a mount as an adapter's model: unknown names and wrong types are told by name."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from affidavit.errors import UsageError
from affidavit.extensions import Source

__all__ = ["Options", "read_options"]


class Options(BaseModel):
    """Base of the options of an adapter."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_Options = TypeVar("_Options", bound=Options)


def read_options(model: type[_Options], source: Source) -> _Options:
    """The options of a source.

    Raises:
        UsageError: `mount-invalid`, naming the option.
    """
    try:
        return model.model_validate(dict(source.options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            "mount-invalid",
            f"option {name} of {source.name}: {first['msg']}",
            hint=f"options of {source.uri.partition(':')[0]}: are {', '.join(model.model_fields)}",
            details={"option": name},
        ) from None
