"""The word that was probably meant."""

from __future__ import annotations

import builtins
import difflib
import sys
from collections.abc import Iterable

from affidavit.runtime.typecheck.catalogue import Catalogue

__all__ = ["close", "listing", "name"]

_SHOWN = 12
_LONGEST = 80
_MOST = 2_000


def close(word: str, candidates: Iterable[str]) -> str | None:
    """The nearest candidate, or None when none is near. Case counts less than letters."""
    if len(word) > _LONGEST:
        return None
    known = list(dict.fromkeys(candidates))[:_MOST]
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    if word.casefold() in folded:
        return folded[word.casefold()]
    cutoff = 0.6 if len(word) > 3 else 0.5
    near = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=cutoff)
    if near:
        return folded[near[0]]
    inside = [
        one for one in known if len(word) > 2 and (_holds(one, word) or (len(one) > 2 and _holds(word, one)))
    ]
    return inside[0] if len(inside) == 1 else None


def _holds(whole: str, part: str) -> bool:
    return part.casefold() in whole.casefold()


def name(word: str, visible: Iterable[str], catalogue: Catalogue) -> str | None:
    """What an unknown name probably stands for: a visible name, one of the host's, a builtin, a missing import."""
    if word in sys.stdlib_module_names:
        return f"import {word}"
    near = close(word, [*visible, *catalogue.values, *catalogue.functions])
    if near is not None:
        return near
    # Short builtins resemble much: only a slip of one or two letters counts.
    public = [one for one in dir(builtins) if not one.startswith("_") and abs(len(one) - len(word)) <= 1]
    return next(iter(difflib.get_close_matches(word, public, n=1, cutoff=0.75)), None)


def listing(candidates: Iterable[str]) -> str:
    """What there is, in words, bounded."""
    known = list(candidates)
    shown = ", ".join(known[:_SHOWN])
    return f"{shown}, ... ({len(known)} in all)" if len(known) > _SHOWN else shown
