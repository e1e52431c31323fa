"""Valid, unique Python identifiers for names that were never meant to be any.

The original name always travels to the far side unchanged; what is made here is only how a script spells it.
The result depends on the *set* of names, never on the order in which they were listed.
"""

from __future__ import annotations

import builtins
import difflib
import keyword
import re
import unicodedata
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

__all__ = [
    "BUILTIN_NAMES",
    "class_name",
    "closest",
    "identifier",
    "identifiers",
    "is_plain_identifier",
    "readable",
    "suggest",
    "suggestion",
    "words_of",
]

MAX_LENGTH: Final = 80
"""Characters kept of one identifier; longer names are cut (and stay unique through their suffix)."""

BUILTIN_NAMES: Final = frozenset(dir(builtins))

# `self` is the receiver in every stub; `mro` cannot be overridden by an attribute of a class.
_RESERVED: Final = frozenset({"self", "cls", "mro"})
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def readable(text: str) -> str:
    """The same text for people and checkers: half a surrogate pair, which JSON may say, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def identifier(original: str, *, fallback: str = "unnamed") -> str:
    """The identifier that a script uses for `original`, before collisions are looked at.

    Characters that no identifier may hold become `_`; leading underscores go (they mean private or special in
    Python); a leading digit gains `n`; keywords and `self` gain a trailing `_`, while soft keywords (`match`, `type`)
    are names like others. Letters of any script stay, in the NFKC form that Python itself compares.
    """
    text = unicodedata.normalize("NFKC", original)
    text = "".join(char if ("a" + char).isidentifier() else "_" for char in text)
    text = re.sub(r"_{2,}", "_", text).strip("_")[:MAX_LENGTH].rstrip("_")
    if not text:
        return fallback
    if not text.isidentifier():
        text = "n" + text
    # Normalisation may take several characters to one that needs another pass (it is idempotent, joining is not).
    text = unicodedata.normalize("NFKC", text)
    if keyword.iskeyword(text) or text in _RESERVED:
        return text + "_"
    return text if text.isidentifier() else fallback


def identifiers(
    originals: Iterable[str], *, reserved: AbstractSet[str] = frozenset(), fallback: str = "unnamed"
) -> dict[str, str]:
    """Map each original name to its own identifier.

    Args:
        originals: names of one scope, in any order, repeats allowed.
        reserved: identifiers of the scope that are taken already (our own attributes).
        fallback: what a name without any usable character is called.

    Returns:
        original -> identifier, in sorted order of the originals. A name that is an identifier already keeps it; among
        the others that would share one, the first in code point order takes it and the rest gain `_2`, `_3`, ....
    """
    names = sorted(set(originals))
    wished = {name: identifier(name, fallback=fallback) for name in names}
    taken: set[str] = set(reserved)
    result: dict[str, str] = {}
    for name in names:
        if wished[name] == name and name not in taken:
            result[name] = name
            taken.add(name)
    for name in names:
        if name not in result:
            result[name] = _free(wished[name], taken)
            taken.add(result[name])
    return {name: result[name] for name in names}


def class_name(text: str, *, fallback: str = "Value") -> str:
    """CamelCase class name from any text: `issue.list-item` becomes `IssueListItem`."""
    parts = [part for part in re.split(r"_+", identifier(text, fallback="")) if part]
    joined = "".join(part[0].upper() + part[1:] for part in parts)
    if not joined or not joined.isidentifier():
        return fallback
    return joined + "_" if keyword.iskeyword(joined) else joined


def is_plain_identifier(text: str) -> bool:
    """Whether `text` can stand as a field of a class body and means exactly itself there.

    False for keywords, for names that Python would normalise to others, and for `__names`, which it mangles.
    """
    return (
        text.isidentifier()
        and not keyword.iskeyword(text)
        and not text.startswith("__")
        and unicodedata.normalize("NFKC", text) == text
    )


def words_of(text: str) -> list[str]:
    """Lower-case words of a name or sentence: `listIssues by_id` gives `list issues by id`."""
    spaced = _CAMEL.sub(" ", unicodedata.normalize("NFKC", text))
    return [word.casefold() for word in re.findall(r"[^\W_]+", spaced)]


def closest(word: str, among: Iterable[str], *, count: int = 3) -> list[str]:
    """Up to `count` names that `word` is likely a misspelling of, best first."""
    folded: dict[str, str] = {}
    for name in among:
        folded.setdefault(name.casefold(), name)
    found = difflib.get_close_matches(word.casefold(), folded, n=count, cutoff=0.6)
    return [folded[one] for one in found]


def suggest(word: str, among: Iterable[str]) -> str | None:
    """The name that `word` is most likely a misspelling of, or None."""
    found = closest(word, among, count=1)
    return found[0] if found else None


def suggestion(word: str, among: Iterable[str], *, otherwise: str = "There are") -> str:
    """A hint: `Did you mean 'city'?`, or the names that there are."""
    names = list(among)
    found = closest(word, names)
    if found:
        return f"Did you mean {' or '.join(repr(one) for one in found)}?"
    if not names:
        return f"{otherwise} none."
    return f"{otherwise}: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}."


def _free(wish: str, taken: AbstractSet[str]) -> str:
    if wish not in taken:
        return wish
    number = 2
    base = wish.rstrip("_")
    while f"{base}_{number}" in taken:
        number += 1
    return f"{base}_{number}"
