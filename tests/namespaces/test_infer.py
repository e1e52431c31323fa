import ast
import datetime as dt
import decimal
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.errors import UsageError
from affidavit.evidence.values import encode
from affidavit.namespaces.infer import Inferred, infer, input_stub

from .checkers import pyright, ty

# name -> (value, expressions that pass and run, expressions that the check refuses)
CASES: dict[str, tuple[Any, list[str], list[str]]] = {
    "null first": (
        [{"a": None}, {"a": [1, 2]}],
        ["[x for d in r for x in (d['a'] or [])]", "sum(len(d['a']) for d in r if d['a'] is not None)"],
        ["[len(d['a']) for d in r]", "[d['a'].upper() for d in r if d['a'] is not None]"],
    ),
    "key only in later item": (
        [{"id": 1}, {"id": 2, "tag": "x"}],
        ["[d.get('tag') for d in r]", "[d['tag'] for d in r if 'tag' in d]", "[d['id'] + 1 for d in r]"],
        ["[d['tga'] for d in r]", "[d['id'].upper() for d in r]"],
    ),
    "bool is not int": (
        {"on": True, "n": 3},
        ["r['n'] + 1", "'yes' if r['on'] else 'no'"],
        ["r['on'].upper()"],
    ),
    "int then float": (
        {"v": [1, 2.5]},
        ["sum(r['v']) / 2", "[round(x) for x in r['v']]", "max(r['v'])"],
        ["[x.bit_length() for x in r['v']]"],
    ),
    "keys are ids": (
        {"101": {"n": "a"}, "205": {"n": "b"}, "309": {"n": "c"}},
        ["[r[k]['n'] for k in r]", "r.get('999')", "[v['n'] for v in r.values()]"],
        ["[v['m'] for v in r.values()]", "[v['n'] + 1 for v in r.values()]"],
    ),
    "keys are paths": (
        {"main.js": 3, "lib/a.js": 1},
        ["sum(r.values())", "r['other.js'] if 'other.js' in r else 0", "sorted(r.items(), key=lambda kv: -kv[1])"],
        ["[v.upper() for v in r.values()]"],
    ),
    "keys that are no names": (
        {"test-key": 1, "with space": 2, "class": 3, "ok": 4},
        ["r['test-key'] + r['with space'] + r['class'] + r['ok']"],
        ["r['okk']", "r['class'].upper()"],
    ),
    "keys that hide types": (
        {"list": [1], "str": "x", "int": 2},
        ["r['list'][0] + r['int']", "r['str'].upper()"],
        ["r['list'].upper()", "r['int'].upper()"],
    ),
    "empty list first": (
        [{"xs": []}, {"xs": ["a"]}],
        ["[x.upper() for d in r for x in d['xs']]"],
        ["[x + 1 for d in r for x in d['xs']]"],
    ),
    "only empty": ({"xs": [], "m": {}}, ["[x for x in r['xs']]", "r['m'].get('a')"], ["r['xs'].upper()"]),
    "text or number": (
        {"v": ["a", 1]},
        ["[x + 1 if isinstance(x, int) else x.upper() for x in r['v']]"],
        ["[x.upper() for x in r['v']]"],
    ),
    "tables inside records": (
        {"rows": [{"id": 1, "by": {"7": 1.5}}], "total": 1},
        ["[row['by']['7'] + 1 for row in r['rows']]"],
        ["r['rwos']", "[row['by']['7'].upper() for row in r['rows']]"],
    ),
    "dates and bytes": (
        {
            "at": dt.datetime(2024, 1, 2),
            "day": dt.date(2024, 1, 2),
            "raw": b"x",
            "n": decimal.Decimal(1),
            "u": uuid.UUID(int=1),
        },
        ["r['at'].isoformat() + r['raw'].decode()", "r['day'].year + 1", "r['u'].hex + str(r['n'] + 1)"],
        ["r['at'].upper()", "r['raw'].upper() + 'x'"],
    ),
    "big and odd numbers": (
        {"big": 2**70, "one": 1.0, "nan": float("nan")},
        ["r['big'] + 1", "r['one'] / 2", "r['nan'] != r['nan']"],
        ["r['big'].upper()"],
    ),
    "dollar keys": ({"$ref": "x", "$int": 3}, ["r['$ref'].upper()", "r['$int'] + 1"], ["r['$ref'] + 1"]),
    "text alone": ("abc", ["r.upper()"], ["r + 1"]),
    "none alone": (None, ["r is None"], ["r.upper()"]),
    "list of lists": ([[1], [2, 3]], ["sum(x for xs in r for x in xs)"], ["[x.upper() for xs in r for x in xs]"]),
    "empty key": ({"": 1, "a": 2}, ["r['']"], ["r.upper()"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    files: dict[str, str] = {}
    for number, (value, accepted, refused) in enumerate(CASES.values()):
        files[f"in{number}.pyi"] = input_stub({"r": encode(value)})
        for kind, expressions in (("good", accepted), ("bad", refused)):
            for place, expression in enumerate(expressions):
                files[f"{kind}{number}_{place}.py"] = f"from in{number} import r\n{expression}\n"
    return ty(tmp_path_factory.mktemp("infer"), files)


@pytest.mark.parametrize("case", CASES)
def test_correct_expressions_pass_and_run(case: str, found: dict[str, list[str]]) -> None:
    number = list(CASES).index(case)
    value, accepted, _ = CASES[case]
    assert found[f"in{number}.pyi"] == []
    for place, expression in enumerate(accepted):
        assert found[f"good{number}_{place}.py"] == []
        eval(expression, {"r": value})


@pytest.mark.parametrize("case", CASES)
def test_wrong_expressions_are_refused(case: str, found: dict[str, list[str]]) -> None:
    number = list(CASES).index(case)
    for place, _ in enumerate(CASES[case][2]):
        assert found[f"bad{number}_{place}.py"]


def test_the_other_checker_agrees_on_the_stubs(tmp_path_factory: pytest.TempPathFactory) -> None:
    files = {
        f"in{number}.pyi": input_stub({"r": encode(one[0])}) for number, one in enumerate(CASES.values())
    }
    errors = pyright(tmp_path_factory.mktemp("pyright"), files)
    assert errors == {name: [] for name in files}


def test_a_key_that_some_items_lack_is_marked_so() -> None:
    assert infer([{"id": 1}, {"id": 2, "tag": "x"}], name="r") == Inferred(
        annotation="list[RItem]",
        declarations=("class RItem(TypedDict):\n    id: int\n    tag: NotRequired[str]",),
    )


def test_every_element_counts_not_the_first() -> None:
    rows: list[Any] = [{"a": 1}] * 5_000 + [{"a": "late"}]
    assert infer(rows).declarations == ("class ValueItem(TypedDict):\n    a: int | str",)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ({"a" * 64: 1}, "Value"),
        ({"deadbeef01": 1, "0badf00d02": 2}, "dict[str, int]"),
        ({"0x401000": "f"}, "dict[str, str]"),
        ({str(uuid.UUID(int=7)): 1}, "dict[str, int]"),
        ({"2024-01-02": 1, "2024-01-03": 2.5}, "dict[str, float]"),
        ({"user_12": 1, "user_13": None}, "dict[str, int | None]"),
        ({"INC00042": 1}, "dict[str, int]"),
        ({"x1": 1, "x2": 2}, "Value"),
        ({"sha_256": "a", "md5": "b"}, "Value"),
        ({"1": None, "2": None}, "dict[str, None]"),
        ({"node:fs": 1}, "dict[str, int]"),
        ({"1": 1, "2": "x"}, "Value"),
        ({"a": 1, "2": 1}, "Value"),
        ({f"k{chr(97 + n // 26)}{chr(97 + n % 26)}": n for n in range(60)}, "dict[str, int]"),
        ({}, "dict[str, Any]"),
        ([], "list[Any]"),
        ([1, None], "list[int | None]"),
        ([True, 1], "list[bool | int]"),
    ],
)
def test_what_is_a_table_and_what_is_a_record(value: Any, annotation: str) -> None:
    assert infer(value).annotation == annotation


def test_equal_shapes_are_declared_once() -> None:
    made = infer({"first": {"x": 1}, "second": {"x": 2}}, name="r")
    assert len(made.declarations) == 2


def test_inputs_are_declared_by_name_and_share_nothing() -> None:
    values: dict[str, Any] = {"a": {"x": {"y": 1}}, "A": {"z": 1}, "list": [1], "dict": {"k": [1]}}
    text = input_stub({name: encode(value) for name, value in values.items()})
    ast.parse(text)
    assert "\nA: A2\n" in text or "\nA: A3\n" in text
    assert "list: _builtins.list[int]" in text
    assert "k: _builtins.list[int]" in text


def test_inputs_without_a_python_name_are_refused() -> None:
    with pytest.raises(UsageError, match="has no Python name"):
        input_stub({"a-b": 1})


def test_no_inputs_need_no_stub() -> None:
    assert input_stub({}).strip() == ""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"inner": [value]}
    return value


@pytest.mark.parametrize(
    "value",
    [
        deep(45),
        {f"field_{chr(97 + n % 26)}{'x' * n}": {"a": n, "b": [str(n)]} for n in range(40)},
        {f"group_{chr(97 + n)}": {f"key_{chr(97 + m)}_{'y' * m}": m for m in range(26)} for n in range(26)},
        [{f"k{'z' * (n + m)}": n for m in range(30)} for n in range(30)],
        {"a" * 5_000: {"b" * 5_000: 1}},
    ],
)
def test_what_would_be_long_is_simplified_from_the_inside(value: Any) -> None:
    made = infer(value)
    assert len(made.annotation) + sum(map(len, made.declarations)) <= 3_072
    ast.parse("\n".join(made.declarations))
    ast.parse(made.annotation)


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3),
        st.dates(), st.datetimes(), st.uuids(), st.decimals(allow_nan=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=6) | st.sampled_from(["a", "class", "list", "1"]), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_every_value_gets_a_stub_that_compiles_and_holds_it(value: Any) -> None:
    made = infer(value, name="r")
    compile("\n".join(made.declarations), "<stub>", "exec", ast.PyCF_ONLY_AST)
    compile(made.annotation, "<stub>", "eval", ast.PyCF_ONLY_AST)
    assert infer(value, name="r") == made
    assert len(made.annotation) + sum(map(len, made.declarations)) <= 3_072


@given(st.lists(JSON, max_size=5), st.randoms(use_true_random=False))
def test_the_kinds_do_not_depend_on_the_order_of_elements(values: list[Any], rng: Any) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)
    one, other = infer(values), infer(shuffled)
    # the words may come in another order, but not others
    assert sorted(_words(one)) == sorted(_words(other))


def _words(made: Inferred) -> list[str]:
    text = "\n".join([made.annotation, *made.declarations])
    return [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and node.id != "_"]


def test_many_generated_stubs_are_clean(tmp_path_factory: pytest.TempPathFactory) -> None:
    awkward: list[Any] = [
        {"": {"": {"": 1}}},
        {"\ud800": 1, "\u2028": 2},
        {"None": 1, "True": 2, "self": 3, "__x": 4, "a.b": {"c d": []}},
        {"TypedDict": {"a": 1}, "NotRequired": 1, "Any": [], "r": {"R": {"R": 1}}},
        [{"_builtins": 1}, {"_datetime": dt.date(2024, 1, 1)}],
        {'quote"': 1, "back\\slash": 2, "new\nline": 3, "tab\t": 4, "é": 5, "日本": 6},
        {"mro": 1, "class_": 2, "keys": 3, "items": [4], "get": {"x": 1}},
    ]
    files = {f"in{number}.pyi": input_stub({"r": encode(value)}) for number, value in enumerate(awkward)}
    folder = tmp_path_factory.mktemp("awkward")
    assert ty(folder, files) == {name: [] for name in files}
    assert pyright(folder, files) == {name: [] for name in files}
