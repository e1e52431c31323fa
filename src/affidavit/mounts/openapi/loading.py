"""The text of an OpenAPI description as JSON: bounded, and with the few YAML types that JSON has."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from affidavit.errors import FailedError, UsageError
from affidavit.evidence.canonical import parse
from affidavit.evidence.record import JsonValue

__all__ = ["MAX_BYTES", "load"]

MAX_BYTES: Final = 32 << 20
_MAX_NODES: Final = 2_000_000
_MAX_DEPTH: Final = 90
_TAG: Final = "tag:yaml.org,2002:"


def load(data: bytes) -> dict[str, JsonValue]:
    """Parse a description, JSON or YAML, and see that it is OpenAPI 3.0 or 3.1.

    Raises:
        UsageError: `mount-invalid`, with what is wrong.
        FailedError: `extra-missing`.
    """
    if data.lstrip()[:1] == b"{":
        try:
            document: Any = parse(data)
        except UsageError as error:
            raise UsageError("mount-invalid", f"the description is no JSON: {error.message}") from None
    else:
        document = _plain(_yaml(data))
    if not isinstance(document, dict):
        raise UsageError("mount-invalid", "the description is no object")
    found = cast("dict[str, JsonValue]", document)
    version = str(found.get("openapi", ""))
    if not re.match(r"3\.[01](\.|$)", version):
        what = "Swagger 2.0" if "swagger" in found else f"openapi {version!r}"
        raise UsageError(
            "mount-invalid", f"the description is {what}, not OpenAPI 3.0 or 3.1", hint="convert it first"
        )
    if not isinstance(found.get("paths", {}), dict):
        raise UsageError("mount-invalid", "the description's paths are no object")
    return found


def _yaml(data: bytes) -> object:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise FailedError(
            "extra-missing",
            "YAML needs a package that is not here: pyyaml",
            hint="install affidavit[openapi]",
        ) from error
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Core(base):  # the core schema of YAML 1.2: no dates, no `no`, no numbers to base sixty
        yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - a class of PyYAML has it so

    for tag, pattern, first in (
        ("null", r"(?:~|null|Null|NULL|)\Z", "~nN"),
        ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
        ("int", r"[-+]?(?:0|[1-9][0-9]*)\Z", "-+0123456789"),
        ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", "-+0123456789."),
    ):
        Core.add_implicit_resolver(
            _TAG + tag, re.compile(pattern), [*first, *([""] if tag == "null" else [])]
        )
    try:
        return yaml.load(data, Loader=Core)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        first_lines = " ".join(str(error).split())[:300]
        raise UsageError("mount-invalid", f"the description is no YAML: {first_lines}") from None


def _plain(value: object) -> JsonValue:
    """What YAML gave, with keys that are text; aliases are followed, so nodes are counted."""
    left = _MAX_NODES

    def walk(node: object, depth: int) -> JsonValue:
        nonlocal left
        left -= 1
        if left < 0 or depth > _MAX_DEPTH:
            raise UsageError("mount-invalid", "the description is nested too deeply, or has too many parts")
        if isinstance(node, dict):
            items = cast("dict[Any, Any]", node).items()
            return {_key(key): walk(item, depth + 1) for key, item in items}
        if isinstance(node, list):
            return [walk(item, depth + 1) for item in cast("list[Any]", node)]
        if node is None or isinstance(node, (str, bool, int, float)):
            return node
        raise UsageError("mount-invalid", f"the description holds a {type(node).__name__}")

    return walk(value, 0)


def _key(key: object) -> str:
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        raise UsageError("mount-invalid", f"the description has a key {key!r} that is no text")
    return str(key)
