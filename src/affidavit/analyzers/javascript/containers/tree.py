"""The paths of a container as a file system: directories, and links followed inside and never out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from affidavit.analyzers.javascript.containers.entry import Entry, limitation
from affidavit.evidence.record import Limitation

__all__ = ["Tree", "join", "normal"]

_MAX_LINKS: Final = 40


def join(directory: str, relative: str) -> str:
    """`directory/relative` without a leading slash for the root directory `""`. Not normalised."""
    return f"{directory}/{relative}" if directory else relative


def normal(path: str) -> str | None:
    """The path without `.`, `..` and double slashes, taken away in the text; None when it leaves the container."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                return None
            names.pop()
        elif name not in {"", "."}:
            names.append(name)
    return "/".join(names)


class Tree:
    """Looks paths up as a kernel would: component by component, `..` after links, at most 40 links.

    Nothing outside the container exists: a path that leaves it is simply not there.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._files: dict[str, Entry] = {}
        self._links: dict[str, str] = {}
        self._directories: set[str] = {""}
        for entry in entries:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        if entry.kind == "file":
            self._files[entry.path] = entry
        elif entry.kind == "link":
            self._links[entry.path] = entry.target or ""
        else:
            self._directories.add(entry.path)
        parent = entry.path.rpartition("/")[0]
        while parent not in self._directories:
            self._directories.add(parent)
            parent = parent.rpartition("/")[0]

    def file(self, path: str) -> str | None:
        """The real path of the file at a normal path, or None when there is no file."""
        if path in self._files:
            return path
        real = self._through_links(path)
        return real if real is not None and real in self._files else None

    def directory(self, path: str) -> str | None:
        """The real path of the directory at a normal path, or None when there is none."""
        if path in self._directories:
            return path
        real = self._through_links(path)
        return real if real is not None and real in self._directories else None

    def _through_links(self, path: str) -> str | None:
        """The real path where a link lies on the way; None also where none does: such a path was looked up already."""
        step = path
        while self._links and step:
            if step in self._links:
                return self.real(path)
            step = step.rpartition("/")[0]
        return None

    def entry(self, real_path: str) -> Entry:
        """The file entry at a real path. Raises `KeyError`."""
        return self._files[real_path]

    def real(self, path: str) -> str | None:
        """The path without links, `.` and `..`; None when it leaves the container, loops, or passes a non-directory."""
        return self._walk(path)[0]

    def _walk(self, path: str) -> tuple[str | None, str]:
        here = ""
        pending = path.split("/")[::-1]
        followed = 0
        while pending:
            name = pending.pop()
            if name in {"", "."}:
                continue
            if name == "..":
                if not here:
                    return None, "leaves the container"
                here = here.rpartition("/")[0]
                continue
            step = join(here, name)
            target = self._links.get(step)
            if target is None:
                here = step
                if pending and step not in self._directories:
                    return None, "leads to nothing"
                continue
            followed += 1
            if followed > _MAX_LINKS:
                return None, "is a loop"
            here = ""
            pending.extend(target.split("/")[::-1])
        return here, ""

    def follow(self, link: Entry) -> tuple[str | None, Limitation | None]:
        """Where a link entry leads: its real path, or None and the limitation that says why not."""
        real, reason = self._walk(link.path)
        if real is None:
            code = "entry-missing" if reason == "leads to nothing" else "entry-unsafe"
            return None, limitation(code, link.path, f"a link that {reason}")
        if real not in self._files and real not in self._directories:
            return None, limitation("entry-missing", link.path, "a link that leads to nothing")
        return real, None
