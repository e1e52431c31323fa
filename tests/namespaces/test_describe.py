import json
from typing import Any

import pytest

from affidavit.errors import NotFoundError
from affidavit.namespaces.describe import Description, Directory, describe
from affidavit.namespaces.operation import Namespace

from .samples import collection, namespace, tool
from .schemas import TREE

LIST_ISSUES = tool(
    "list_issues",
    {
        "type": "object",
        "properties": {
            "per-page": {"type": "integer", "default": 30, "description": "Rows of one page."},
            "state": {"enum": ["open", "closed"]},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["state"],
    },
    {"type": "array", "items": {"type": "string"}},
    doc="The issues of a project.\n\nNewest first, pull requests left out.",
)


def root(datasets: int = 2) -> Namespace:
    apps = {
        f"app{number}": namespace(f"app{number}", modules=namespace("modules", *collection()))
        for number in range(datasets)
    }
    tools = namespace(
        "tool",
        github=namespace(
            "github", LIST_ISSUES, tool("createIssue", doc="Open a new one."), doc="The tracker."
        ),
        draw=namespace("draw", tool("render", TREE, TREE, doc="Draw a tree.")),
    )
    return namespace("df", db=namespace("db", doc="Datasets.", **apps), tool=tools)


def found(words: str = "", path: str = "", **options: Any) -> Directory:
    answer = describe(root(), words, path, **options)
    assert isinstance(answer, Directory)
    return answer


def whole(path: str, **options: Any) -> Description:
    answer = describe(root(), path=path, **options)
    assert isinstance(answer, Description)
    return answer


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("list issues", "tool.github.list_issues"),
        ("listIssues", "tool.github.list_issues"),
        ("ISSUES", "tool.github.list_issues"),
        ("create", "tool.github.createIssue"),
        ("draw tree", "tool.draw.render"),
        ("per page", "tool.github.list_issues"),
        ("pull requests", "tool.github.list_issues"),
        ("modules page", "db.app0.modules.page"),
        ("rend", "tool.draw.render"),
        ("github issue", "tool.github.createIssue"),
    ],
)
def test_words_of_names_docs_and_parameters_find(words: str, first: str) -> None:
    answer = found(words)
    assert answer.found[0].path == first
    assert repr(first) in answer.hint


def test_the_same_operation_of_many_datasets_is_one_line() -> None:
    answer = describe(root(60), "modules page")
    assert isinstance(answer, Directory)
    assert answer.found[0].path == "db.app0.modules.page"
    assert len(answer.found[0].also) == 59
    assert answer.found[0].as_json()["also_total"] == 59
    assert len(answer.found[0].as_json()["also"]) == 3
    assert "and 56 more." in answer.text()
    assert len(answer.text()) < 1_200


def test_a_search_can_stay_inside_a_namespace() -> None:
    assert {one.path.split(".")[0] for one in found("page").found} == {"db", "tool"}
    assert [one.path for one in found("page", "tool").found] == ["tool.github.list_issues"]


def test_nothing_found_says_what_to_try() -> None:
    answer = found("isues")
    assert answer.found == ()
    assert "issues" in answer.hint
    assert "map" in found("xyzzy").hint
    assert "map" in found("!!!").hint


def test_the_map_lists_operations_while_they_are_few() -> None:
    answer = found()
    assert answer.path == "df"
    assert answer.total == len(answer.found) == 9
    assert (
        "await df.db.app0.modules.page(where=..., limit=64) -> Page[ModulesRow]  # One page of rows."
        in answer.text()
    )


def test_the_map_lists_namespaces_when_they_are_many() -> None:
    answer = describe(root(60))
    assert isinstance(answer, Directory)
    assert [one.signature for one in answer.found] == ["df.db", "df.tool"]
    assert answer.found[0].doc == "180 operations. Datasets."
    deeper = describe(root(20), path="db")
    assert isinstance(deeper, Directory)
    assert len(deeper.found) == 20
    everything = describe(root(60), full=True)
    assert isinstance(everything, Directory)
    assert len(everything.found) == everything.total == 183


def test_a_namespace_is_listed_with_its_words() -> None:
    answer = found(path="df.tool.github")
    assert [one.path for one in answer.found] == ["tool.github.list_issues", "tool.github.createIssue"]
    assert answer.text().startswith("# df.tool.github: The tracker.\n")


def test_one_operation_whole() -> None:
    answer = whole("df.tool.github.list_issues")
    assert answer.as_json() == {
        "path": "tool.github.list_issues",
        "signature": 'await df.tool.github.list_issues(state: Literal["open", "closed"], *, per_page: int = 30, '
        "labels: list[str] = ...) -> list[str]",
        "doc": "The issues of a project.\n\nNewest first, pull requests left out.",
        "effect": "read",
        "contract": "sample.list_issues/1",
        "parameters": [
            {"name": "state", "type": 'Literal["open", "closed"]', "required": True},
            {
                "name": "per_page",
                "type": "int",
                "required": False,
                "original": "per-page",
                "default": 30,
                "doc": "Rows of one page.",
            },
            {"name": "labels", "type": "list[str]", "required": False},
        ],
        "declarations": [],
        "example": 'result = await df.tool.github.list_issues(state="open")',
    }
    text = answer.text()
    assert "    Newest first, pull requests left out.\n    per_page: Rows of one page.\n" in text
    assert text.endswith('result = await df.tool.github.list_issues(state="open")\n')


def test_types_come_with_the_operation_and_schemas_on_demand() -> None:
    answer = whole("tool.draw.render")
    assert answer.declarations[0].startswith("class Node(TypedDict):")
    assert "input_schema" not in answer.as_json()
    full = whole("tool.draw.render", full=True).as_json()
    assert full["input_schema"] == TREE
    assert full["output_schema"] == TREE


@pytest.mark.parametrize(
    "path", ["db.app1.modules.page", "df.db.app1.modules.page()", "db.app1.modules.pages"]
)
def test_a_paged_operation_comes_with_its_iterator(path: str) -> None:
    answer = whole(path)
    assert answer.path == "db.app1.modules.page"
    assert "async for page in df.db.app1.modules.pages(...)" in answer.text()


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("tool.github.list_isues", "df.tool.github.list_issues"),
        ("list_issues", "df.tool.github.list_issues"),
        ("df.db.app0.modules.pag", "df.db.app0.modules.page"),
        ("db.app9.modules.page", "df.db.app0.modules.page"),
        ("tool.github.list_issues.more", "df.tool.github.list_issues"),
        ("github.render", "df.tool.draw.render"),
    ],
)
def test_unknown_paths_get_suggestions(path: str, near: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        describe(root(), path=path)
    assert caught.value.code == "operation-unknown"
    assert near in caught.value.hint
    assert near.removeprefix("df.") in caught.value.details["near"]


def test_unknown_without_anything_like_it() -> None:
    with pytest.raises(NotFoundError) as caught:
        describe(root(), path="xyzzy")
    assert caught.value.hint == "Search with words instead."


def test_answers_are_small_and_json() -> None:
    for answer in (found(), found("issues"), whole("tool.draw.render")):
        assert len(json.dumps(answer.as_json())) < 2_500
        assert json.loads(json.dumps(answer.as_json())) == answer.as_json()


def test_an_empty_catalogue_says_so() -> None:
    answer = describe(Namespace(name="df"))
    assert isinstance(answer, Directory)
    assert answer.found == ()
    assert answer.hint == "nothing is mounted here"
