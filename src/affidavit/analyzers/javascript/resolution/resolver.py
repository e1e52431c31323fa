"""Resolving one reference inside a container.

Where Node.js settles it, the answer is Node's. Where Node finds nothing, what bundlers and TypeScript accept is
accepted: an `import` without extension or of a directory, other extensions, and TypeScript sources (`./x.js` that is
`./x.ts`).
`Resolution.standard` tells which of the two it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from affidavit.analyzers.javascript.containers.tree import Tree, join, normal
from affidavit.analyzers.javascript.resolution.exports import Mode, Target, match_exports, match_imports
from affidavit.analyzers.javascript.resolution.specifier import (
    Parsed,
    Settled,
    decode_path,
    parse_specifier,
    shorten,
)

__all__ = ["PROVIDED", "Resolution", "Resolver", "Rule", "Status"]

Status: TypeAlias = Literal["resolved", "external", "builtin", "missing", "rejected", "computed", "unknown"]
Rule: TypeAlias = Literal["exact", "extension", "index", "main", "exports", "imports", "typescript"]

_NODE_EXTENSIONS: Final = (".js", ".json", ".node")
_ALL_EXTENSIONS: Final = (*_NODE_EXTENSIONS, ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".jsx")
_TYPED_EXTENSIONS: Final = (".ts", ".tsx", ".mts", ".cts")
_TYPED_ORDER: Final = (*_TYPED_EXTENSIONS, *_NODE_EXTENSIONS, ".mjs", ".cjs", ".jsx", ".d.ts")
_TYPED_SOURCES: Final = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx",),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
PROVIDED: Final = frozenset({"electron"})
"""Packages that the runtime provides whatever lies in `node_modules`: the npm package of this name only starts it."""

_MOST_KNOWN: Final = 20_000
"""Answers that are remembered."""

PackageReader: TypeAlias = Callable[[str], dict[str, Any]]
_Hit: TypeAlias = tuple[str, Rule]


@dataclass(frozen=True, slots=True)
class Resolution:
    """Where a reference leads.

    Attributes:
        status: `resolved` (a file of the container), `external` (a package or address that is not in it), `builtin`,
            `missing` (a file or export that should be there and is not), `rejected` (a path that leaves the container
            or may not be used), `computed` (no literal specifier), `unknown` (relative to what the source does not
            say).
        target: real path of the file, for `resolved`.
        key: `external:name`, `builtin:name`, `missing:specifier` or `rejected:specifier`; None for the others.
        rule: which rule found the target.
        standard: whether Node.js finds the same target.
    """

    status: Status
    target: str | None = None
    key: str | None = None
    rule: Rule | None = None
    standard: bool = True


class Resolver:
    """Resolves references between the files of one tree.

    Args:
        tree: the container's files.
        read_package: the object in the package.json at a real path; `{}` when it is broken.
    """

    def __init__(self, tree: Tree, read_package: PackageReader) -> None:
        self._tree = tree
        self._read_package = read_package
        self._packages: dict[str, dict[str, Any] | None] = {}
        self._known: dict[tuple[str, str, Mode, bool, bool], Resolution] = {}

    def resolve(self, specifier: str, referrer: str, mode: Mode, *, url: bool = False) -> Resolution:
        """Resolve one specifier.

        Args:
            specifier: its exact text.
            referrer: real path of the file that holds it.
            mode: `import` or `require`, which conditions and rules hold.
            url: it is a URL relative to the file (`new URL("x", import.meta.url)`), never a package.
        """
        typed = referrer.endswith(_TYPED_EXTENSIONS)
        key = (referrer.rpartition("/")[0], specifier, mode, url, typed)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._resolve(*key)
        return known

    def _resolve(self, directory: str, specifier: str, mode: Mode, url: bool, typed: bool) -> Resolution:
        parsed = parse_specifier(specifier)
        if url and (parsed.shape != "settled" or parsed.status in {"builtin", "missing"}):
            parsed = Parsed("relative", specifier if parsed.shape == "relative" else f"./{specifier}")
        if parsed.shape == "settled":
            return _settled(parsed.status, parsed.name)
        if parsed.shape == "relative":
            return self._relative(directory, parsed.name, mode, typed)
        if parsed.shape == "internal":
            return self._internal(directory, specifier, mode, typed)
        return self._package(directory, specifier, parsed, mode, typed)

    # relative

    def _relative(self, directory: str, specifier: str, mode: Mode, typed: bool) -> Resolution:
        path = decode_path(specifier) if mode == "import" else specifier
        place = normal(join(directory, path))
        if place is None:
            return _settled("rejected", shorten(specifier))
        folder = _names_folder(path)
        if mode == "import" or typed:
            exact = None if folder else self._tree.file(place)
            hit: _Hit | None = None if exact is None else (exact, "exact")
        else:
            hit = self._load(place, _NODE_EXTENSIONS, folder)
        if hit:
            return Resolution("resolved", hit[0], rule=hit[1])
        hit = self._load(place, _TYPED_ORDER if typed else _ALL_EXTENSIONS, folder)
        if hit is None and path != specifier:
            # Bundlers also see files whose names hold `?`, `#` or `%`.
            raw = normal(join(directory, specifier))
            hit = None if raw is None else self._load(raw, _ALL_EXTENSIONS, _names_folder(specifier))
        return _beyond(hit) if hit else _settled("missing", shorten(specifier))

    def _load(self, path: str, extensions: tuple[str, ...], folder: bool) -> _Hit | None:
        """A file or directory as `require` loads it; a folder is meant where the path ends in a slash."""
        file = None if folder else self._load_file(path, extensions)
        return file or self._load_directory(path, extensions)

    def _load_file(self, path: str, extensions: tuple[str, ...]) -> _Hit | None:
        exact = self._tree.file(path)
        if exact is not None:
            return exact, "exact"
        found = self._with_extension(path, extensions, "extension")
        return found if found or extensions is _NODE_EXTENSIONS else self._typed_source(path)

    def _with_extension(self, path: str, extensions: tuple[str, ...], rule: Rule) -> _Hit | None:
        for extension in extensions:
            found = self._tree.file(path + extension)
            if found is not None:
                return found, rule
        return None

    def _typed_source(self, path: str) -> _Hit | None:
        stem, dot, suffix = path.rpartition(".")
        for extension in _TYPED_SOURCES.get(dot + suffix, ()):
            found = self._tree.file(stem + extension)
            if found is not None:
                return found, "typescript"
        return None

    def _load_directory(self, path: str, extensions: tuple[str, ...]) -> _Hit | None:
        directory = self._tree.directory(path)
        if directory is None:
            return None
        main = (self._package_at(directory) or {}).get("main")
        place = normal(join(directory, main)) if isinstance(main, str) and main else None
        if place is not None:
            hit = self._load_file(place, extensions)
            hit = hit or self._with_extension(join(place, "index"), extensions, "index")
            if hit:
                return hit[0], "main"
        return self._with_extension(join(directory, "index"), extensions, "index")

    # packages

    def _package(
        self,
        directory: str,
        specifier: str,
        parsed: Parsed,
        mode: Mode,
        typed: bool,
        *,
        search: Mode | None = None,
    ) -> Resolution:
        """A package by its name: `mode` decides over conditions, `search` (by default the same) over where to look."""
        search = search or mode
        if parsed.name in PROVIDED:
            return _settled("external", parsed.name)
        own = self._scope(directory)
        if own is not None:
            home, package = own
            if package.get("exports") is not None and package.get("name") == parsed.name:
                return self._exported(home, package["exports"], parsed.subpath, specifier, mode, typed)
        folders = list(self._module_folders(directory))
        seen = False
        for modules in folders:
            home = self._tree.directory(join(modules, parsed.name))
            if home is not None:
                seen = True
                exports = (self._package_at(home) or {}).get("exports")
                if exports is not None:
                    return self._exported(home, exports, parsed.subpath, specifier, mode, typed)
            hit = self._in_package(modules, home, specifier, parsed, search)
            if hit:
                return Resolution("resolved", hit[0], rule=hit[1])
            if self._ends_search(modules, home, specifier, search):
                break
        return self._package_beyond(folders, specifier, parsed, seen)

    def _in_package(
        self, modules: str, home: str | None, specifier: str, parsed: Parsed, mode: Mode
    ) -> _Hit | None:
        """What Node.js finds of a package without `exports` in one folder of packages."""
        if mode == "require":
            place = normal(join(modules, specifier))
            return None if place is None else self._load(place, _NODE_EXTENSIONS, _names_folder(specifier))
        if home is None:
            return None
        if parsed.subpath == ".":
            return self._load_directory(home, _NODE_EXTENSIONS)
        place = normal(join(home, decode_path(parsed.subpath)))
        exact = None if place is None else self._tree.file(place)
        return None if exact is None else (exact, "exact")

    def _ends_search(self, modules: str, home: str | None, specifier: str, mode: Mode) -> bool:
        """Whether Node.js gives up here: `import` at the first package, `require` at a `main` that is not there."""
        if mode == "import":
            return home is not None
        place = normal(join(modules, specifier))
        directory = None if place is None else self._tree.directory(place)
        main = None if directory is None else (self._package_at(directory) or {}).get("main")
        return isinstance(main, str) and main != ""

    def _package_beyond(self, folders: list[str], specifier: str, parsed: Parsed, seen: bool) -> Resolution:
        for modules in folders:
            place = normal(join(modules, specifier))
            if place is None:
                return _settled("rejected", shorten(specifier))
            hit = self._load(place, _ALL_EXTENSIONS, _names_folder(specifier))
            if hit:
                return _beyond(hit)
        return _settled("missing", shorten(specifier)) if seen else _settled("external", shorten(parsed.name))

    def _exported(
        self, home: str, exports: Any, subpath: str, specifier: str, mode: Mode, typed: bool
    ) -> Resolution:
        return self._at_target(home, match_exports(exports, subpath, mode), specifier, mode, typed, "exports")

    def _internal(self, directory: str, specifier: str, mode: Mode, typed: bool) -> Resolution:
        own = self._scope(directory)
        if own is None:
            return _settled("missing", shorten(specifier))
        home, package = own
        target = match_imports(package.get("imports"), specifier, mode)
        return self._at_target(home, target, specifier, mode, typed, "imports")

    def _at_target(
        self, home: str, target: Target, specifier: str, mode: Mode, typed: bool, rule: Rule
    ) -> Resolution:
        if target.kind == "bare":
            parsed = parse_specifier(target.value)
            if parsed.shape == "package":
                return self._package(home, target.value, parsed, mode, typed, search="import")
            if parsed.shape == "settled" and parsed.status in {"builtin", "external"}:
                return _settled(parsed.status, parsed.name)
        if target.kind == "file" and parse_specifier("./" + target.value).shape == "relative":
            path = normal(join(home, decode_path(target.value)))
            found = None if path is None else self._tree.file(path)
            if found is not None:
                return Resolution("resolved", found, rule=rule)
            source = None if path is None else self._typed_source(path)
            if source is not None:
                return _beyond(source)
        return _settled("missing", shorten(specifier))

    def _module_folders(self, directory: str) -> Iterator[str]:
        while True:
            if directory.rpartition("/")[2] != "node_modules":
                modules = self._tree.directory(join(directory, "node_modules"))
                if modules is not None:
                    yield modules
            if not directory:
                return
            directory = directory.rpartition("/")[0]

    def _scope(self, directory: str) -> tuple[str, dict[str, Any]] | None:
        """The nearest folder with a package.json, and its object."""
        while directory.rpartition("/")[2] != "node_modules":
            package = self._package_at(directory)
            if package is not None:
                return directory, package
            if not directory:
                return None
            directory = directory.rpartition("/")[0]
        return None

    def _package_at(self, directory: str) -> dict[str, Any] | None:
        if directory not in self._packages:
            path = self._tree.file(join(directory, "package.json"))
            self._packages[directory] = None if path is None else self._read_package(path)
        return self._packages[directory]


def _settled(status: Settled, name: str) -> Resolution:
    return Resolution(status, key=f"{status}:{name}")


def _beyond(hit: _Hit) -> Resolution:
    return Resolution("resolved", hit[0], rule=hit[1], standard=False)


def _names_folder(path: str) -> bool:
    return path.rpartition("/")[2] in {"", ".", ".."}
