import ast
import random
from dataclasses import replace
from pathlib import Path

import pytest

from affidavit.evidence.record import JsonValue
from affidavit.namespaces.names import identifiers
from affidavit.namespaces.operation import Namespace, Operation, Parameter
from affidavit.namespaces.stubs import default_text, parameter_list, render, stub

from .checkers import pyright, ty
from .samples import collection, namespace, tool
from .schemas import CASES, TREE

# A server whose names are no Python names, or fall together.
SERVER: dict[str, JsonValue] = {
    "do-thing": {"type": "object", "properties": {"class": {"type": "string"}}, "required": ["class"]},
    "do_thing": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "issues.list": {
        "type": "object",
        "properties": {"from": {"type": "string"}, "per-page": {"type": "integer"}},
        "required": ["from"],
    },
    "issues": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    "list": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
    "Page": TREE,
    "Any": {"type": "object", "properties": {"self": {}, "df": {}}},
    "Literal": {"type": "object", "properties": {"mode": {"enum": ["a", "b"]}}},
    "Node": TREE,
    "dict": {
        "type": "object",
        "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}},
    },
    "__init__": None,
    "": None,
    "def": None,
}


def server() -> Namespace:
    names = identifiers(SERVER)
    return namespace(
        "odd",
        *(
            replace(tool(original, schema, schema), name=names[original])
            for original, schema in SERVER.items()
        ),
    )


def cases() -> Namespace:
    operations: list[Operation] = []
    for number, (schema, _, _) in enumerate(CASES.values()):
        arguments: JsonValue = {"type": "object", "properties": {"value": schema}}
        operations.append(tool(f"case_{number}", None if "$ref" in str(schema) else arguments, schema))
    return namespace("cases", *operations)


def root() -> Namespace:
    node: JsonValue = {"type": "object", "properties": {"class": {"$ref": "#/$defs/Node"}}}
    other: JsonValue = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": node},
    }
    app = namespace("app", modules=namespace("modules", *collection()))
    return namespace(
        "df",
        db=namespace("db", app=app, web=app, rows=namespace("rows", *collection("OtherRow", "n: int"))),
        tool=namespace(
            "tool",
            odd=server(),
            cases=cases(),
            nodes=namespace("nodes", tool("other", other, other)),
            empty=namespace("empty", doc="Nothing."),
        ),
    )


GOOD = """
async def good() -> None:
    page = await df.db.app.modules.page(where={"path": "main.js"}, limit=3)
    page = await df.db.app.modules.page({"path": ["a", "b"]})
    page.rows[0]["path"].upper()
    page["rows"][0]["path"].upper()
    page.page.total + page["page"]["offset"]
    page.source["format"].upper() + page.source.artifact
    page.source_coverage.bounds["files"] + page["source_coverage"]["examined"]
    [limitation.place.upper() for limitation in page.limitations]
    page.evidence_id.upper(), list(page), "rows" in page, len(page), page.get("rows"), page.keys()
    async for each in df.db.web.modules.pages(where={"path": None}):
        [row["path"].upper() for row in each.rows]
    count = await df.db.app.modules.count()
    count.count + count["count"]
    for item in await df.db.rows.get_many(["a"]):
        if item["status"] == "found":
            item["item"]["n"] + 1
        else:
            item["code"].upper()
    await df.tool.odd.do_thing_2(class_="a")
    await df.tool.odd.do_thing(n=1)
    await df.tool.odd.issues_list(from_="x", per_page=2)
    await df.tool.odd.issues(7)
    await df.tool.odd.list(tags=["a"])
    await df.tool.odd.Any(self_=1, df=2)
    await df.tool.odd.dict(m={"a": "b"})
    await df.tool.odd.unnamed()
    await df.tool.odd.def_()
    tree = await df.tool.odd.Page(root={"name": "a", "children": [{"name": "b"}]}, mode="fast")
    await df.tool.odd.Page(tree["root"])
    await df.tool.nodes.other(root={"class": {"class": {}}})
    try:
        df.answer(status="answered", value=page.rows, evidence=[page.evidence_id], derivation="d", missing=["x"])
    except df.Error as error:
        error.code.upper(), error.details["path"], error.retryable
    df.calls()[0]["evidence_id"].upper()
    df.budget()["calls_left"] + 1
"""

BAD = {
    "unknown dataset": "df.db.ap",
    "unknown collection": "df.db.app.modulez",
    "unknown operation": "df.db.app.modules.pge()",
    "unknown tool": "df.tool.odd.issue()",
    "assignment": "df.db = 1",
    "assignment below": "df.db.app.modules = 1",
    "unknown argument": "await df.db.app.modules.page(wher={})",
    "unknown field of where": 'await df.db.app.modules.page(where={"pth": "x"})',
    "type of an argument": 'await df.db.app.modules.page(limit="3")',
    "missing argument": "await df.tool.odd.issues_list()",
    "argument by place": 'await df.tool.odd.issues_list("x", 2)',
    "literal": 'await df.tool.odd.Page({"name": "a"}, mode="medium")',
    "inner type": 'await df.tool.odd.Page({"name": 1})',
    "row key": '(await df.db.app.modules.page()).rows[0]["pth"]',
    "page key": '(await df.db.app.modules.page())["rowz"]',
    "page attribute": "(await df.db.app.modules.page()).rowz",
    "nested attribute": "(await df.db.app.modules.page()).page.totl",
    "iterating a page": "async for x in df.db.app.modules.page(): pass",
    "iterating pages": "for x in df.db.app.modules.pages(): pass",
    "not awaited": "df.db.app.modules.page().rows",
    "answer status": 'df.answer(status="done")',
    "answer argument": 'df.answer(status="answered", values=1)',
    "error attribute": "df.Error.kode",
    "call info": 'df.calls()[0]["evidence"]',
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("stubs")
    files = {"host.pyi": render(root()), "good.py": f"from host import df\n{GOOD}"}
    for name, line in BAD.items():
        files[f"bad {name}.py"] = f"from host import df\n\nasync def bad():\n    {line}\n"
    return ty(folder, files)


def test_the_stub_itself_is_clean(found: dict[str, list[str]], tmp_path: Path) -> None:
    text = render(root())
    assert found["host.pyi"] == []
    assert pyright(tmp_path, {"host.pyi": text})["host.pyi"] == []


def test_correct_scripts_pass_both_checkers(found: dict[str, list[str]], tmp_path: Path) -> None:
    assert found["good.py"] == []
    files = {"host.pyi": render(root()), "good.py": f"from host import df\n{GOOD}"}
    assert pyright(tmp_path, files)["good.py"] == []


@pytest.mark.parametrize("name", BAD)
def test_wrong_scripts_are_found(name: str, found: dict[str, list[str]]) -> None:
    assert found[f"bad {name}.py"]


def test_the_original_names_arrive() -> None:
    odd = server()
    given = {
        "do_thing_2": ("do-thing", {"class_": "a"}, {"class": "a"}),
        "do_thing": ("do_thing", {"n": 1}, {"n": 1}),
        "issues_list": ("issues.list", {"from_": "x", "per_page": 2}, {"from": "x", "per-page": 2}),
        "issues": ("issues", {"id": 7}, {"id": 7}),
    }
    for name, (original, python, arrives) in given.items():
        operation = odd.operations[name]
        assert operation.contract == f"sample.{original}/1"
        originals = {one.name: one.original for one in operation.parameters}
        assert operation.parse({originals[key]: value for key, value in python.items()}) == arrives


def shuffled(one: Namespace, rng: random.Random) -> Namespace:
    operations, children = list(one.operations.items()), list(one.children.items())
    rng.shuffle(operations)
    rng.shuffle(children)
    return replace(
        one, operations=dict(operations), children={name: shuffled(child, rng) for name, child in children}
    )


def test_the_text_does_not_depend_on_the_order_of_listing() -> None:
    text = render(root())
    assert render(root()) == text
    for seed in range(5):
        assert render(shuffled(root(), random.Random(seed))) == text


def test_declarations_of_one_name_and_two_meanings_are_told_apart() -> None:
    text = render(root())
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    assert len(names) == len(set(names))
    assert "class Node(TypedDict):\n    name: str\n    children: NotRequired[list[Node]]" in text
    assert 'Node_2 = TypedDict("Node_2", {"class": NotRequired[Node_2]})' in text
    # equal declarations are there once, however many operations use them
    assert text.count("class ModulesRow(TypedDict)") == 1


def test_a_type_that_means_something_else_through_another_is_told_apart() -> None:
    def made(inner: str) -> Operation:
        declarations = (
            "class Outer(TypedDict):\n    inner: Inner\n    Inner: int",
            f"class Inner(TypedDict):\n    x: {inner}",
        )
        return replace(tool("get"), returns="Outer", declarations=declarations)

    text = render(namespace("df", a=namespace("a", made("int")), b=namespace("b", made("str"))))
    assert "class Outer_2(TypedDict):\n    inner: Inner_2\n    Inner: int" in text
    assert "async def get(self) -> Outer_2:" in text


@pytest.mark.parametrize("name", ["Page", "Df", "Any", "list", "Error", "CallInfo"])
def test_declarations_never_take_the_names_of_the_head(name: str) -> None:
    declared = replace(tool("get"), returns=name, declarations=(f"class {name}(TypedDict):\n    x: int",))
    text = render(namespace("df", a=namespace("a", declared)))
    assert f"class {name}_2(TypedDict):" in text
    assert f"async def get(self) -> {name}_2:" in text


def test_namespaces_called_like_types_are_told_apart() -> None:
    inner = namespace("page", *collection())
    text = render(namespace("df", page=inner, modules_row=namespace("modules_row"), df=namespace("df")))
    assert "class Page_2:" in text
    assert "class ModulesRow_2:" in text
    assert "class Df_2:" in text


def test_sixty_datasets_of_thirty_collections_stay_small() -> None:
    collections = {
        f"c{number}": namespace(f"c{number}", *collection(f"C{number}Row", f"f{number}: int"))
        for number in range(30)
    }
    datasets = {f"d{number}": Namespace(name=f"d{number}", children=collections) for number in range(60)}
    made = stub(Namespace(name="df", children={"db": Namespace(name="db", children=datasets)}))
    # the collections once, not sixty times
    assert len(made.text) < 40_000
    assert made.classes["C7"] == tuple(sorted(f"db.d{number}.c7" for number in range(60)))


def test_classes_tell_which_namespaces_they_stand_for() -> None:
    classes = stub(root()).classes
    assert classes["Df"] == ("",)
    assert classes["Modules"] == ("db.app.modules", "db.web.modules")
    assert classes["App"] == ("db.app",)
    assert classes["Web"] == ("db.web",)


def test_an_empty_root_still_has_what_is_ours() -> None:
    text = render(Namespace(name="df"))
    assert "def answer(self" in text
    assert text.endswith("df: Df\n")


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        ("int", 64, "64"),
        ("int | None", None, "None"),
        ("Any", None, "None"),
        ("int", None, "..."),
        ("str", "a\"b'\n", '"a\\"b\'\\n"'),
        ("str", "x" * 61, "..."),
        ("float", 3, "3"),
        ("float", 1.5, "1.5"),
        ("int", "3", "..."),
        ("bool", True, "True"),
        ("int", True, "..."),
        ('Literal["a", "b"]', "a", '"a"'),
        ('Literal["a", "b"]', "c", "..."),
        ("list[int]", [1], "..."),
        ('Literal["a|b"] | None', "a|b", '"a|b"'),
    ],
)
def test_defaults_are_shown_where_they_are_of_the_type(
    annotation: str, default: JsonValue, expected: str
) -> None:
    one = Parameter(name="x", original="x", annotation=annotation, required=False, default=default)
    assert default_text(one) == expected


def test_parameters_in_an_order_that_python_accepts() -> None:
    def one(name: str, *, required: bool = True, positional: bool = False) -> Parameter:
        return Parameter(
            name=name, original=name, annotation="int", required=required, default=1, positional=positional
        )

    assert parameter_list([]) == ""
    assert parameter_list([one("a", positional=True), one("b")]) == "a: int, *, b: int"
    optional_first = [
        one("a", required=False, positional=True),
        one("b", positional=True),
        one("c", positional=True),
    ]
    assert parameter_list(optional_first) == "a: int = 1, *, b: int, c: int"


def test_odd_documentation_stays_inside_its_quotes() -> None:
    docs = ['Ends with "quotes"', 'a """ b', "back\\slash\\", 'first\n\nsecond"', "", "é \u2028 x", "x" * 500]
    operations = [tool(f"t{number}", doc=doc) for number, doc in enumerate(docs)]
    text = render(namespace("df", a=namespace("a", *operations, doc='says "this"')))
    ast.parse(text)
    assert "first" in text
    assert 'second"' not in text
    assert max(map(len, text.splitlines())) < 400
