"""A picture in DOT, the language of Graphviz."""

from __future__ import annotations

from typing import Final

from affidavit.interfaces.pictures.picture import Arrow, Box, Picture
from affidavit.interfaces.pictures.text import dot_text

__all__ = ["as_dot"]

_ON_PATH: Final = "#c2410c"
_AVOIDED: Final = "#b91c1c"
_ROOMY: Final = 120
"""Up to so many boxes words have a place of their own on arrows, which a layout spends most of its time on."""
_COLOURS: Final = {"taken": "#15803d", "else": "#b45309", "other": "#334155"}


def as_dot(picture: Picture) -> str:
    """The text of the picture, the same for the same picture."""
    place = "label" if len(picture.boxes) <= _ROOMY else "taillabel"
    heading = "".join(f"{dot_text(line)}\\l" for line in (picture.title, *picture.notes))
    lines = [
        "digraph control_flow {",
        f'  graph [label="{heading}", labelloc=t, labeljust=l, fontname="Courier", fontsize=12];',
        '  node [shape=box, fontname="Courier", fontsize=10, margin="0.12,0.06", color="#334155"];',
        '  edge [fontname="Courier", fontsize=9, labeldistance=2, labelangle=-35];',
        *(f"  n{at} [{_box(box)}];" for at, box in enumerate(picture.boxes)),
        *(f"  n{arrow.source} -> n{arrow.target} [{_arrow(arrow, place)}];" for arrow in picture.arrows),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _box(box: Box) -> str:
    label = "".join(f"{dot_text(line)}\\l" for line in box.lines)
    wanted = [f'label="{label}"']
    styles = ["filled"]
    fill = "#ffffff"
    if box.blocks > 1:
        fill = "#e2e8f0"
        styles.append("rounded")
    if box.leaves:
        fill = "#ecfccb"
    if box.entry:
        wanted.append("penwidth=2")
    if box.on_path:
        fill = "#ffedd5"
        wanted += [f'color="{_ON_PATH}"', "penwidth=2.5"]
    if box.avoided:
        styles.append("dashed")
        wanted += [f'color="{_AVOIDED}"', f'fontcolor="{_AVOIDED}"']
    return ", ".join([*wanted, f'style="{",".join(styles)}"', f'fillcolor="{fill}"'])


def _arrow(arrow: Arrow, place: str) -> str:
    colour = _COLOURS[arrow.kind]
    wanted: list[str] = []
    if arrow.on_path:
        colour = _ON_PATH
        wanted += ["penwidth=3", "weight=4"]
    if arrow.avoided:
        colour = _AVOIDED
    if arrow.back:
        wanted.append("style=dashed")
    elif arrow.avoided:
        wanted.append("style=dotted")
    label = arrow.label or ("" if arrow.edges == 1 else f"{arrow.edges} edges")
    if label:
        wanted.append(f'{place}="{dot_text(label)} "')
    return ", ".join([*wanted, f'color="{colour}"', f'fontcolor="{colour}"'])
