"""The word that was probably meant."""

from __future__ import annotations

import builtins
import difflib
import sys
from collections.abc import Iterable

from affidavit.runtime.typecheck.catalogue import Catalogue
from affidavit.runtime.typecheck.scopes import Script

__all__ = ["close", "listing", "name"]

_SHOWN = 12


def close(word: str, candidates: Iterable[str]) -> str | None:
    """The nearest candidate, or None when none is near. Case counts less than letters."""
    known = list(dict.fromkeys(candidates))
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    if word.casefold() in folded:
        return folded[word.casefold()]
    cutoff = 0.6 if len(word) > 3 else 0.5
    near = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=cutoff)
    if near:
        return folded[near[0]]
    inside = [candidate for candidate in known if len(word) > 2 and word.casefold() in candidate.casefold()]
    return inside[0] if len(inside) == 1 else None


def name(word: str, script: Script, catalogue: Catalogue) -> str | None:
    """What an unknown name probably stands for: a name of the script or host, a builtin, a missing import."""
    if word in sys.stdlib_module_names:
        return f"import {word}"
    own = [*script.names, *catalogue.values, *catalogue.functions]
    public = [builtin for builtin in dir(builtins) if not builtin.startswith("_")]
    return close(word, own) or close(word, public)


def listing(candidates: Iterable[str]) -> str:
    """What there is, in words, bounded."""
    known = list(candidates)
    shown = ", ".join(known[:_SHOWN])
    return f"{shown}, ... ({len(known)} in all)" if len(known) > _SHOWN else shown
