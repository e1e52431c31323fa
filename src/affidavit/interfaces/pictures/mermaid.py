"""A picture in Mermaid, which many pages that hold Markdown draw by themselves."""

from __future__ import annotations

from typing import Final

from affidavit.interfaces.pictures.picture import Arrow, Box, Picture
from affidavit.interfaces.pictures.text import mermaid_text, printable

__all__ = ["as_mermaid"]

_CLASSES: Final = {
    "entry": "stroke-width:2px",
    "several": "fill:#e2e8f0",
    "leaves": "fill:#ecfccb",
    "path": "fill:#ffedd5,stroke:#c2410c,stroke-width:3px",
    "avoided": "stroke:#b91c1c,color:#b91c1c,stroke-dasharray:4",
}


def as_mermaid(picture: Picture) -> str:
    """The text of the picture, the same for the same picture."""
    lines = ["flowchart TD", *(f"%% {_comment(line)}" for line in (picture.title, *picture.notes))]
    for at, box in enumerate(picture.boxes):
        lines.append(f'  n{at}["{"<br/>".join(map(mermaid_text, box.lines))}"]')
    lines += [f"  {_arrow(arrow)}" for arrow in picture.arrows]
    for name, style in _CLASSES.items():
        found = [f"n{at}" for at, box in enumerate(picture.boxes) if name in _classes(box)]
        if found:
            lines += [f"  classDef {name} {style}", f"  class {','.join(found)} {name}"]
    marked = [str(at) for at, arrow in enumerate(picture.arrows) if arrow.on_path]
    if marked:
        lines.append(f"  linkStyle {','.join(marked)} stroke:#c2410c,stroke-width:4px")
    return "\n".join(lines) + "\n"


def _classes(box: Box) -> list[str]:
    applies = {
        "entry": box.entry,
        "several": box.blocks > 1,
        "leaves": box.leaves,
        "path": box.on_path,
        "avoided": box.avoided,
    }
    return [name for name, does in applies.items() if does]


def _comment(line: str) -> str:
    """A comment's text; braces would make it a directive."""
    return printable(line).replace("{", "(").replace("}", ")")


def _arrow(arrow: Arrow) -> str:
    line = "-.->" if arrow.back or arrow.avoided else "-->"
    label = arrow.label or ("" if arrow.edges == 1 else f"{arrow.edges} edges")
    words = f'|"{mermaid_text(label)}"|' if label else ""
    return f"n{arrow.source} {line}{words} n{arrow.target}"
