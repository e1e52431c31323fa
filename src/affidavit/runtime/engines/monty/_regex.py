r"""Regular expressions for monty's engine: the same pattern, with Python's idea of word and space characters.

Both engines read `\w`, `\b`, `\s` and `$`, and differ in what they mean: Python counts `½` as a word character and a
combining accent not, separators like `\x1c` as space, and `$` matches before a last line end.
"""

from __future__ import annotations

from typing import Final

__all__ = ["translate"]

_WORD: Final = r"\p{L}\p{N}_"
_BOUNDARY: Final = rf"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_END: Final = r"(?:$|(?=\n\z))"
_OUTSIDE: Final = {
    "w": f"[{_WORD}]",
    "W": f"[^{_WORD}]",
    "s": r"[\s\x1c-\x1f]",
    "S": r"[^\s\x1c-\x1f]",
    "b": _BOUNDARY,
    "Z": r"\z",
}
_INSIDE: Final = {
    "w": _WORD,
    "W": f"[^{_WORD}]",
    "s": r"\s\x1c-\x1f",
    "S": r"[^\s\x1c-\x1f]",
}


def translate(pattern: str) -> str:
    """The pattern with its character classes spelt out. Only for patterns that Python reads without complaint."""
    out: list[str] = []
    in_class = False
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and at + 1 < len(pattern):
            escaped = pattern[at : at + 2]
            out.append((_INSIDE if in_class else _OUTSIDE).get(escaped[1], escaped))
            at += 2
            continue
        if letter == "[" and not in_class:
            in_class = True
            # A bracket that closes at once is a literal: `[]a]`, `[^]a]`.
            size = 2 if pattern[at + 1 : at + 2] == "^" else 1
            if pattern[at + size : at + size + 1] == "]":
                out.append(pattern[at : at + size] + "\\]")
                at += size + 1
                continue
        elif letter == "]" and in_class:
            in_class = False
        elif letter == "$" and not in_class:
            letter = _END
        out.append(letter)
        at += 1
    return "".join(out)
