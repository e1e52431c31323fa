import keyword
import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.namespaces.names import (
    class_name,
    closest,
    identifier,
    identifiers,
    is_plain_identifier,
    suggest,
    suggestion,
    words_of,
)

TRICKY = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="ab_-. 1", max_size=6),
    st.sampled_from(
        ["class", "match", "type", "self", "__init__", "_", "", "None", "print", "ﬁn", "²", "日本", "a" * 500]
    ),
)


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ("plain", "plain"),
        ("do-thing", "do_thing"),
        ("issues.list", "issues_list"),
        ("per page", "per_page"),
        ("class", "class_"),
        ("from", "from_"),
        ("match", "match"),
        ("type", "type"),
        ("None", "None_"),
        ("self", "self_"),
        ("cls", "cls_"),
        ("mro", "mro_"),
        ("2fa", "n2fa"),
        ("__init__", "init"),
        ("_private", "private"),
        ("a--b", "a_b"),
        ("trailing-", "trailing"),
        ("", "unnamed"),
        ("---", "unnamed"),
        ("🙂", "unnamed"),
        ("größe", "größe"),
        ("ﬁle", "file"),
        ("list", "list"),
        ("naïve name", "naïve_name"),
        ("x\u0301", "x\u0301"),
        ("$ref", "ref"),
        ("a\nb", "a_b"),
    ],
)
def test_one_name(original: str, expected: str) -> None:
    assert identifier(original) == expected


def test_each_tool_of_a_server_keeps_a_name_of_its_own() -> None:
    names = identifiers(["do-thing", "do_thing", "issues.list", "issues"])
    assert names == {
        "do-thing": "do_thing_2",
        "do_thing": "do_thing",
        "issues": "issues",
        "issues.list": "issues_list",
    }


def test_a_suffix_never_takes_the_name_of_another() -> None:
    names = identifiers(["a b", "a-b", "a_b", "a_b_2"])
    assert names["a_b"] == "a_b"
    assert names["a_b_2"] == "a_b_2"
    assert len(set(names.values())) == 4


def test_reserved_names_are_not_given_out() -> None:
    assert identifiers(["answer", "calls", "x"], reserved={"answer", "calls"}) == {
        "answer": "answer_2",
        "calls": "calls_2",
        "x": "x",
    }


@given(st.lists(TRICKY, max_size=12), st.randoms(use_true_random=False))
def test_names_are_valid_unique_and_independent_of_order(originals: list[str], rng: random.Random) -> None:
    names = identifiers(originals, reserved={"answer"})
    assert set(names) == set(originals)
    assert len(set(names.values())) == len(names)
    for name in names.values():
        assert name.isidentifier()
        assert not keyword.iskeyword(name)
        assert not name.startswith("_")
        assert name not in {"self", "answer"}
        # the form in which Python itself compares names
        assert unicodedata.normalize("NFKC", name) == name
    shuffled = list(originals)
    rng.shuffle(shuffled)
    assert identifiers(shuffled, reserved={"answer"}) == names


@given(TRICKY)
def test_a_name_made_once_stays_as_it_is(original: str) -> None:
    made = identifier(original)
    assert identifier(made) == made or made.endswith("_")


@given(TRICKY)
def test_class_names_can_be_declared(original: str) -> None:
    name = class_name(original)
    compile(f"class {name}: ...", "<test>", "exec")


def test_class_names_read_as_types() -> None:
    assert class_name("issues.list-item") == "IssuesListItem"
    assert class_name("true") == "True_"
    assert class_name("") == "Value"


@pytest.mark.parametrize("key", ["class", "a-b", "", "__hidden", "ﬁ", "1a"])
def test_keys_that_cannot_stand_in_a_class_body(key: str) -> None:
    assert not is_plain_identifier(key)


def test_words_of_any_spelling() -> None:
    assert words_of("listIssues by_id") == ["list", "issues", "by", "id"]
    assert words_of("HTTPServer2") == ["http", "server2"]


def test_suggestions() -> None:
    assert closest("forcast", ["forecast", "broadcast", "city"]) == ["forecast", "broadcast"]
    assert suggest("Forcast", ["forecast"]) == "forecast"
    assert suggest("zzz", ["forecast"]) is None
    assert suggestion("cty", ["city"]) == "Did you mean 'city'?"
    assert suggestion("zzz", ["city", "days"], otherwise="It takes") == "It takes: city, days."
    assert suggestion("zzz", [], otherwise="It takes") == "It takes none."
