"""Which grammar reads which file.

`.js`, `.cjs`, `.mjs` and `.jsx` share one grammar: JSX is part of it. TypeScript has two, because `<T>x` is a cast in
`.ts` and an element in `.tsx`.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias, get_args

from tree_sitter import Language

__all__ = ["LANGUAGES", "LanguageName", "grammar", "language_of"]

LanguageName: TypeAlias = Literal["javascript", "jsx", "typescript", "tsx"]

LANGUAGES: Final[tuple[LanguageName, ...]] = get_args(LanguageName)

_BY_SUFFIX: Final[dict[str, LanguageName]] = {
    ".js": "javascript",
    ".cjs": "javascript",
    ".mjs": "javascript",
    ".jsx": "jsx",
    ".ts": "typescript",
    ".cts": "typescript",
    ".mts": "typescript",
    ".tsx": "tsx",
}


def language_of(path: str) -> LanguageName | None:
    """The language of a file by its name (any case), None when it is not source of a kind that is read here."""
    return _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


@cache
def grammar(language: LanguageName) -> Language:
    """The grammar of a language, loaded once a process.

    Raises:
        ValueError: for a name that is not in `LANGUAGES`.
    """
    if language in {"javascript", "jsx"}:
        import tree_sitter_javascript

        return Language(tree_sitter_javascript.language())
    import tree_sitter_typescript

    if language == "typescript":
        return Language(tree_sitter_typescript.language_typescript())
    if language == "tsx":
        return Language(tree_sitter_typescript.language_tsx())
    raise ValueError(f"no grammar for {language!r}")
