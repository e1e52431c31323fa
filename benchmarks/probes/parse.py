"""Nothing but tree-sitter, once over each source file: `parse.py FOLDER_OR_FILE`."""

import os
import sys

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Parser

JAVASCRIPT = Language(tree_sitter_javascript.language())
TYPESCRIPT = Language(tree_sitter_typescript.language_typescript())
TSX = Language(tree_sitter_typescript.language_tsx())
GRAMMARS = {
    **dict.fromkeys((".js", ".cjs", ".mjs", ".jsx"), JAVASCRIPT),
    **dict.fromkeys((".ts", ".cts", ".mts"), TYPESCRIPT),
    ".tsx": TSX,
}


def files(root: str) -> list[str]:
    if os.path.isfile(root):
        return [root]
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)


for path in files(sys.argv[1]):
    grammar = GRAMMARS.get(os.path.splitext(path)[1].lower())
    if grammar is not None and not os.path.islink(path):
        with open(path, "rb") as file:
            Parser(grammar).parse(file.read())
