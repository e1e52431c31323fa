"""Every face of an operation says the same: stub, JSON Schema, validation, conversion, discovery."""

import ast
from typing import Any

import jsonschema
import pytest

from affidavit.errors import UsageError
from affidavit.namespaces.describe import Description, describe
from affidavit.namespaces.functions import operation_from_function
from affidavit.namespaces.operation import Operation
from affidavit.namespaces.stubs import render

from . import functions
from .oracle import annotated
from .samples import called, namespace, tool
from .schemas import CASES
from .test_functions import FACES, TAKE


def by_schema(case: str) -> Operation:
    schema, _, _ = CASES[case]
    lifted: dict[str, Any] = {}
    if schema is not True:
        lifted = {key: schema[key] for key in ("$defs", "definitions", "$id") if key in schema}
        schema = {key: schema[key] for key in schema if key not in lifted}
    return tool(
        "take",
        {"type": "object", "properties": {"value": schema}, "required": ["value"], **lifted},
        {"type": "array", "items": schema, **lifted},
    )


FUNCTIONS = [functions.forecast, functions.order, functions.person, functions.binary, functions.positional]


@pytest.mark.parametrize("case", CASES)
def test_the_schema_that_is_shown_is_the_one_that_is_held(case: str) -> None:
    operation = by_schema(case)
    _, good, bad = CASES[case]
    arguments: Any = jsonschema.Draft202012Validator(dict(operation.input_schema))
    arguments.check_schema(arguments.schema)
    result: Any = jsonschema.Draft202012Validator(dict(operation.output_schema or {}))
    result.check_schema(result.schema)
    for value in good:
        assert arguments.is_valid({"value": value})
        assert operation.parse({"value": value}) == {"value": value}
        assert result.is_valid([value])
        assert operation.convert([value]) == [value]
    for value in bad:
        assert not arguments.is_valid({"value": value})
        with pytest.raises(UsageError):
            operation.parse({"value": value})
        assert not result.is_valid([value])


@pytest.mark.parametrize("case", CASES)
def test_what_is_taken_is_shown_alike_in_stub_and_discovery(case: str) -> None:
    operation = by_schema(case)
    root = namespace("df", tool=namespace("tool", operation))
    stub = ast.parse(render(root))
    shown = describe(root, path="tool.take")
    assert isinstance(shown, Description)
    method = next(
        node for node in ast.walk(stub) if isinstance(node, ast.AsyncFunctionDef) and node.name == "take"
    )
    given = {
        one.arg: ast.unparse(one.annotation)
        for one in method.args.args + method.args.kwonlyargs
        if one.annotation
    }
    for one in shown.as_json()["parameters"]:
        assert ast.unparse(ast.parse(one["type"], mode="eval")) == given[one["name"]]


@pytest.mark.parametrize("name", FACES)
def test_the_stub_of_a_function_allows_what_it_takes(name: str) -> None:
    parameter = next(one for one in TAKE.parameters if one.name == name)
    adapter = annotated(TAKE, parameter.annotation)
    for value, _ in FACES[name][0]:
        whole = isinstance(value, float) and value.is_integer()  # 5.0 is an integer in JSON, not in Python
        if isinstance(value, (str, int, float, list, dict, bytes)) and not whole:
            adapter.validate_python({"value": value}, strict=True)
        # what is recorded and travels is what the stub says
        adapter.validate_python({"value": TAKE.parse({name: value})[name]}, strict=True)


# parameters whose refused values are all of a wrong type, so that the check can find them before running
BY_TYPE = [
    *("text", "number", "real", "flag", "nothing", "maybe", "either", "some"),
    *("table", "choice", "colour", "trees", "raw", "moment", "span", "ident"),
]


@pytest.mark.parametrize("name", BY_TYPE)
def test_the_stub_of_a_function_refuses_wrong_types(name: str) -> None:
    parameter = next(one for one in TAKE.parameters if one.name == name)
    adapter = annotated(TAKE, parameter.annotation)
    for value in FACES[name][1]:
        with pytest.raises(ValueError, match="validation error"):
            adapter.validate_python({"value": value}, strict=True)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_of_functions_are_what_stub_and_schema_say(function: Any) -> None:
    operation = operation_from_function(function, contract="python.sample")
    arguments: dict[str, Any] = {
        "forecast": {"city": "Rome"},
        "order": {"id": 1},
        "binary": {"raw": b"ab"},
        "positional": {"first": 1},
    }.get(operation.name, {})
    result = called(operation, arguments)
    annotated(operation, operation.returns).validate_python({"value": result}, strict=True)
    if not isinstance(result, bytes):
        jsonschema.Draft202012Validator(dict(operation.output_schema or {})).validate(result)  # pyright: ignore[reportUnknownMemberType]
