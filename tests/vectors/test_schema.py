"""The shapes in `docs/format.schema.json` are those of the product, and JSON Schema as others read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from affidavit.errors import UsageError
from affidavit.evidence.values import check_encoded
from affidavit.store.event_kinds import KINDS
from tests.vectors.test_vectors import load

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "format.schema.json").read_text("utf-8")
)
FORMATS = FormatChecker()


@FORMATS.checks("affidavit-value", raises=UsageError)
def is_value(json_value: object) -> bool:
    check_encoded(json_value)
    return True


def validate(json_value: Any, *names: str) -> None:
    """See that a value has the shape that the names lead to."""
    place = "#" + "".join(f"/$defs/{name}" for name in names)
    validator: Any = Draft202012Validator({"$ref": place, **SCHEMA}, format_checker=FORMATS)
    validator.validate(json_value)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() | SCHEMA["$defs"]["events"]["$defs"]))
def test_each_kind_of_event_has_the_members_of_the_table(kind: str) -> None:
    assert kind in KINDS, "a kind that the product does not know"
    shapes = SCHEMA["$defs"]["events"]["$defs"]
    assert kind in shapes, "docs/format.schema.json does not know the kind"
    shape, known = shapes[kind], KINDS[kind]
    data = shape["properties"]["data"]
    assert {name.rstrip("?") for name in known.data} == set(data["properties"])
    assert {name for name in known.data if not name.endswith("?")} == set(data["required"])
    assert tuple(shape.get("x-blobs", ())) == known.blobs
    for name, wanted in (("run", known.run), ("evidence", known.evidence)):
        required, forbidden = name in shape["required"], shape["properties"].get(name) is False
        assert (required, forbidden) == (wanted is True, wanted is False)


def test_what_holds_has_the_shapes() -> None:
    for it in load("bundle")["valid"]:
        validate(json.loads(it["bundle"]), "bundle")
    for it in load("identity")["records"]:
        validate(it["body"], "record")
    for it in load("journal")["valid"]:
        for raw in it["journal"].splitlines():
            line = json.loads(raw)
            content = {name: line[name] for name in sorted(set(line) - {"n", "prev", "sum"})}
            validate(content, "lines", " ".join(content))
            event = content.get("event", {})
            if event.get("kind") in KINDS:
                validate(event, "events", event["kind"])
