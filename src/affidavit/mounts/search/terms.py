"""Words of texts and of questions, so that one finds the other whatever script or spelling they are in.

SQLite's `unicode61` tokenizer does the plain part on both sides: case, accents, punctuation. What it does not see is
in a second column of expansions: the words inside identifiers (`parseHttpHeader`), and pairs of neighbouring
characters of scripts that write no spaces between words. A question never becomes query syntax: each of its words is
quoted, whatever it is.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import groupby
from typing import Final

__all__ = ["MAX_TERMS", "Question", "expanded", "read_question"]

MAX_TERMS: Final = 64
"""Terms of one question; further ones are not looked for."""

# Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer: no spaces between words, or words that change at their ends.
_DENSE: Final = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    "\u3041-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U00020000-\U000323af"
)
_DENSE_RUN: Final = re.compile(f"[{_DENSE}]+")
_ASCII_PIECE: Final = re.compile(r"[A-Za-z0-9]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CAMEL_WORD: Final = re.compile(r"\b[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a question asks of an index.

    Attributes:
        terms: the words that are looked for, as a person would write them.
        match: the FTS5 expression, or empty when the question holds no word.
    """

    terms: tuple[str, ...]
    match: str


def expanded(text: str) -> tuple[str, str]:
    """The two columns of an index that a text gives: its plain words, and its expansions.

    >>> expanded("parseHttpHeader splits")
    ('parseHttpHeader splits', 'parse Http Header')
    """
    if text.isascii():
        return text, " ".join(_CAMEL.sub(" ", word) for word in _CAMEL_WORD.findall(text))
    text = unicodedata.normalize("NFKC", text)
    more = [_CAMEL.sub(" ", word) for word in _CAMEL_WORD.findall(text)]
    more += [" ".join(_pairs(run)) for run in _DENSE_RUN.findall(text)]
    return _DENSE_RUN.sub(" ", text.translate(_WordsOnly())), " ".join(more)


def read_question(text: str) -> Question:
    """The words of a question and how an index is asked for any of them.

    Words that were written as one (`read-only`, `parseHttpHeader`) also count as a phrase.

    >>> read_question('"zebra* OR -x')
    Question(terms=('zebra', 'or', 'x'), match='"zebra" OR "or" OR "x"')
    """
    found: dict[str, str] = {}  # FTS5 expression -> term as shown
    for chunk in unicodedata.normalize("NFKC", text).split():
        if len(found) >= MAX_TERMS:
            break
        words: list[str] = []
        for piece in _pieces(chunk):
            if _DENSE_RUN.match(piece):
                _dense(piece, found)
            else:
                words += _plain(piece, found)
        if len(words) > 1:
            found.setdefault(_quoted(words), " ".join(words))
    asked = list(found.items())[:MAX_TERMS]
    return Question(terms=tuple(term for _, term in asked), match=" OR ".join(match for match, _ in asked))


class _WordsOnly(dict[int, int]):
    """A translation that leaves letters, marks and digits of any script, and makes spaces of the rest.

    The tokenizer has an older Unicode than Python, and takes some characters for letters that a question leaves out.
    """

    def __missing__(self, code: int) -> int:
        self[code] = code if code < 128 or unicodedata.category(chr(code))[0] in "LMN" else 32
        return self[code]


def _pieces(chunk: str) -> list[str]:
    """The runs of letters, marks and digits of a chunk, apart where a script without spaces begins or ends."""
    if chunk.isascii():
        return _ASCII_PIECE.findall(chunk)
    runs = groupby(
        chunk, key=lambda one: (unicodedata.category(one)[0] in "LMN", bool(_DENSE_RUN.match(one)))
    )
    return ["".join(run) for (is_word, _), run in runs if is_word]


def _plain(piece: str, found: dict[str, str]) -> list[str]:
    """Note a word and the words inside it; returns the word as one of its compound."""
    word = piece.lower()
    found.setdefault(_quoted([word]), word)
    inner = [part.lower() for part in _CAMEL.split(piece) if part] if _CAMEL_WORD.fullmatch(piece) else []
    if len(inner) > 1:
        for part in inner:
            found.setdefault(_quoted([part]), part)
        found.setdefault(_quoted(inner), " ".join(inner))
    return [word]


def _dense(run: str, found: dict[str, str]) -> None:
    """Note a run of a script without spaces: each pair of characters, and all of them in a row."""
    if len(run) == 1:
        found.setdefault(f'"{_code(run)}" *', run)  # also as the first of a pair
        return
    pairs = _pairs(run)[:-1]
    for place, pair in enumerate(pairs):
        found.setdefault(_quoted([pair]), run[place : place + 2])
    if len(pairs) > 1:
        found.setdefault(_quoted(pairs), run)


def _pairs(run: str) -> list[str]:
    """Each pair of neighbours, then the last character alone, so that a single one is a prefix of something."""
    return [_code(run[place : place + 2]) for place in range(len(run))]


def _code(characters: str) -> str:
    """Characters as a word that every tokenizer leaves alone, the same length for each."""
    return "".join(f"u{ord(one):05x}" for one in characters)


def _quoted(words: list[str]) -> str:
    return '"' + " ".join(words).replace('"', '""') + '"'
