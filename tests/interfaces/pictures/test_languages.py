"""Pictures in each language: what they say, that they are the same each time, and that no name breaks out of them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from affidavit.errors import FailedError
from affidavit.interfaces.pictures import svg
from affidavit.interfaces.pictures.dot import as_dot
from affidavit.interfaces.pictures.mermaid import as_mermaid
from affidavit.interfaces.pictures.picture import Marks, Picture, draw
from affidavit.interfaces.pictures.svg import as_svg
from tests.interfaces.pictures.functions import function

LOOP = function(5, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (3, 4)], {4: "return"})

HOSTILE = [
    '"]; evil [label="x',
    "</text><script>alert(1)</script>",
    "a\\",
    "\\N\\G\\E",
    "&lt;b&gt; &quot;",
    "line\nbreak\r\x00\x1b[31m",
    "%%{init: {}}%%",
    "`${x}` #quot; | end",
    "\udcff lone",
    "\u202e right to left",
    "--> n0; click n0 href",
    "x" * 5000,
]


def sample(**changes: Any) -> Picture:
    return draw(LOOP, **changes)


def test_what_a_picture_says() -> None:
    marks = Marks(
        path_blocks=frozenset({"f/b0", "f/b2"}),
        path_edges=frozenset({"f/b0#1"}),
        avoided_blocks=frozenset({"f/b1"}),
    )
    picture = sample(marks=marks, notes=["path"])
    assert picture.title == "guarded (f)"
    assert picture.boxes[0].lines == ("f/b0", "0x0 op0", "0x1 op1", "0x2 op2")
    assert picture.boxes[4].lines[-1] == "exit: return"
    assert [(it.source, it.target, it.label, it.back, it.on_path) for it in picture.arrows] == [
        (0, 1, "c0", False, False),
        (0, 2, "else", False, True),
        (1, 3, "", False, False),
        (2, 3, "", False, False),
        (3, 0, "c3", True, False),
        (3, 4, "else", False, False),
    ]
    assert [box.on_path for box in picture.boxes] == [True, False, True, False, False]
    assert [box.avoided for box in picture.boxes] == [False, True, False, False, False]


def test_a_long_block_shows_its_first_and_last_instructions() -> None:
    picture = draw(function(9, [(at, at + 1) for at in range(8)]))
    assert picture.boxes[8].lines == (
        "f/b8", "0x80 op0", "0x81 op1", "0x82 op2", "... 6 more", "0x89 op9", "0x8a op10"
    )  # fmt: skip


def test_cases_of_one_target_are_one_arrow() -> None:
    switch = function(2, [])
    switch["edges"] = [
        {
            "id": f"e{at}", "source": "f/b0", "target": "f/b1", "ordinal": at, "kind": "case", "condition": None,
            "polarity": None, "case": at, "operation": "jmp rax", "proven": False,
        }
        for at in range(9)
    ]  # fmt: skip
    [arrow] = draw(switch).arrows
    assert (arrow.label, arrow.edges) == ("case 0, 1, 2, 3, ... (9 cases)?", 9)


def test_an_outline_says_that_it_is_one() -> None:
    picture = draw(function(1000, [(at, at + 1) for at in range(999)], {999: "return"}))
    assert picture.outlined
    assert picture.notes == ("outlined: 1,000 blocks in 2 boxes; one with a count stands for several",)
    assert picture.boxes[1].lines == ("chain of 999 blocks", "from f/b1", "to f/b999", "exit: return")


def test_the_same_facts_have_the_same_bytes() -> None:
    first, again = sample(), draw(function(**_shape()))
    assert as_dot(first) == as_dot(again)
    assert as_mermaid(first) == as_mermaid(again)
    assert as_svg(as_dot(first)) == as_svg(as_dot(again))


def _shape() -> dict[str, Any]:
    return {"total": 5, "edges": [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (3, 4)], "exits": {4: "return"}}


def test_svg_has_each_box_and_arrow() -> None:
    picture = sample()
    root = ET.fromstring(as_svg(as_dot(picture)))
    groups = [one.get("class") for one in root.iter("{http://www.w3.org/2000/svg}g")]
    assert groups.count("node") == len(picture.boxes)
    assert groups.count("edge") == len(picture.arrows)
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "f/b4" in words
    assert "guarded (f)" in words


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_breaks_out(name: str) -> None:
    changed = function(2, [(0, 1), (0, 0)], {1: "return"}, name=name)
    changed["blocks"][1]["text"] = [name]
    changed["edges"][0]["condition"] = name
    picture = draw(changed, notes=[name])
    root = ET.fromstring(as_svg(as_dot(picture)))
    kinds = {one.tag.rpartition("}")[2] for one in root.iter()}
    assert kinds <= {"svg", "g", "title", "polygon", "path", "text"}
    assert sum(one.get("class") == "node" for one in root.iter()) == 2
    lines = as_mermaid(picture).split("\n")
    shape = re.compile(
        r'flowchart TD|%% [^{}]*|  n\d+\["[^"]*"\]|  n\d+ (-->|-\.->)(\|"[^"]*"\|)? n\d+|  class(Def)? .*|'
    )
    assert [line for line in lines if not shape.fullmatch(line)] == []


def test_an_instruction_reads_as_it_was_written() -> None:
    changed = function(1, [])
    words = 'lea rax, [rip+0x1] # "a&lt;b\\n"'
    changed["blocks"][0]["text"] = [words]
    root = ET.fromstring(as_svg(as_dot(draw(changed))))
    shown = [(one.text or "").replace("\xa0", " ") for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words in shown


def test_without_the_package_the_next_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svg, "_PACKAGE", "no-such-package")
    with pytest.raises(FailedError) as caught:
        as_svg("digraph {}")
    assert caught.value.code == "extra-missing"
    assert "affidavit[pictures]" in caught.value.hint


def test_what_the_layout_says_is_told() -> None:
    with pytest.raises(FailedError) as caught:
        as_svg("digraph {")
    assert caught.value.code == "tool-failed"
    assert "--mermaid" in caught.value.hint
