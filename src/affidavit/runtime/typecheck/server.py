"""One warm type checker process, spoken to over its standard streams.

A script is the last cell of a notebook whose first cell imports the host's names. So top-level `await` is allowed,
positions stay the caller's, and an unclosed bracket cannot reach another cell. The protocol is the Language Server
Protocol; of it only notebooks and pulled diagnostics are used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from affidavit.runtime.typecheck.project import Project

__all__ = ["Finding", "ServerLostError", "TypeServer", "find_binary"]

_MAX_MESSAGE = 64 << 20
_MEMORY_BYTES = 4 << 30
_CPU_SECONDS = 600
_REAP_SECONDS = 10.0
_LULL_SECONDS = 0.02  # after a check, when the processor is free for what does not hurry
_ENCODING = "utf-8"


class ServerLostError(Exception):
    """The checker process cannot be started, ended, or broke the protocol. It must be replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One diagnostic of the checker: lines 1-based, columns 0-based in UTF-8 bytes, as `ast` counts them.

    `severity` is 1 error, 2 warning, 3 information, 4 hint. `related` holds what it points to: URI and note.
    """

    rule: str
    severity: int
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    related: tuple[tuple[str, str], ...] = ()


def find_binary() -> str | None:
    """Where the checker's executable is: beside its package, beside this Python, or on the path."""
    try:
        from ty import find_ty_bin

        return find_ty_bin()
    except (ImportError, FileNotFoundError):
        beside = Path(sys.executable).with_name("ty")
        return str(beside) if beside.is_file() else shutil.which("ty")


class TypeServer:
    """The process. Not safe for concurrent use: its owner sends one check at a time.

    Every method but `kill` and `reap` raises `ServerLostError`; whoever sees that, or was cancelled inside one, must
    `kill` it and start another.
    """

    def __init__(self, binary: str, project: Project) -> None:
        self._binary = binary
        self._project = project
        self._process: asyncio.subprocess.Process | None = None
        self._sent = 0
        self._opened = 0
        self._killed = False
        self._early: dict[int, Any] = {}
        self._unsent: list[bytes] = []
        self._hosts: dict[str, tuple[Finding, ...]] = {}

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process else None

    @property
    def is_alive(self) -> bool:
        """Whether the process runs, as far as is known."""
        return not self._killed and self._process is not None and self._process.returncode is None

    @property
    def checks(self) -> int:
        """How many notebooks it has examined."""
        return self._opened

    async def start(self) -> None:
        """Start the process and shake hands."""
        try:
            # It reads standard input until that ends, so it ends with this process, however that dies.
            self._process = await asyncio.create_subprocess_exec(
                self._binary,
                "server",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self._project.root,
                env=self._project.environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise ServerLostError(f"the type checker cannot be started: {error}") from error
        _bound(self._process.pid)
        root = self._project.root.as_uri()
        reply = await self._reply(self._ask("initialize", _initialize(root)))
        if reply["capabilities"].get("positionEncoding") != _ENCODING:
            raise ServerLostError("the type checker does not count columns in bytes")
        self._notify("initialized", {})

    def announce(self, paths: Iterable[Path]) -> None:
        """Tell it that stub modules were written; without this it would not look for the files."""
        changes = [{"uri": path.as_uri(), "type": 1} for path in paths]
        self._notify("workspace/didChangeWatchedFiles", {"changes": changes})

    async def examine(self, host: str, cells: Sequence[str]) -> tuple[tuple[Finding, ...], ...]:
        """Findings of each cell of a fresh notebook, in order; the first is `host`. The notebook is closed again.

        Nothing stands before the host's cell, and the modules that it imports never change: it is asked about once.
        """
        self._opened += 1
        path = self._project.root.as_uri().removeprefix("file:") + f"/script{self._opened}.ipynb"
        notebook = "file:" + path
        uris = [f"vscode-notebook-cell:{path}#{number}" for number in range(len(cells) + 1)]
        self._notify("notebookDocument/didOpen", _notebook(notebook, uris, [host, *cells]))
        known = self._hosts.get(host)
        asked = uris if known is None else uris[1:]
        identifiers = [self._ask("textDocument/diagnostic", {"textDocument": {"uri": uri}}) for uri in asked]
        replies = [_findings(await self._reply(identifier)) for identifier in identifiers]
        if known is None:
            self._hosts[host] = replies[0]
        else:
            replies.insert(0, known)
        documents = [{"uri": uri} for uri in uris]
        closing = {"notebookDocument": {"uri": notebook}, "cellTextDocuments": documents}
        self._notify("notebookDocument/didClose", closing)
        asyncio.get_running_loop().call_later(_LULL_SECONDS, self._flush)
        return tuple(replies)

    async def examine_stubs(self, stubs: Mapping[Path, str]) -> dict[Path, tuple[Finding, ...]]:
        """Findings of stub modules themselves, by their paths."""
        for path, text in stubs.items():
            opened = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
            self._notify("textDocument/didOpen", {"textDocument": opened})
        # Only now: a request that is under way when a document changes is refused.
        asked = {
            path: self._ask("textDocument/diagnostic", {"textDocument": {"uri": path.as_uri()}})
            for path in stubs
        }
        found = {path: _findings(await self._reply(identifier)) for path, identifier in asked.items()}
        for path in stubs:
            self._notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
        return found

    def kill(self) -> None:
        """End the process at once."""
        self._killed = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def reap(self) -> None:
        """Wait for a killed process to be gone and its pipes closed."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.stdin.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_REAP_SECONDS):
                # A pipe full of an unread reply never reports its end, and `wait` would wait for that.
                while await process.stdout.read(1 << 16):
                    pass
                await process.stdin.wait_closed()
                await process.wait()

    def _ask(self, method: str, params: Mapping[str, Any]) -> int:
        self._sent += 1
        self._send({"id": self._sent, "method": method, "params": params})
        return self._sent

    def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise ServerLostError("the type checker ended")
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode(_ENCODING, "replace")
        self._unsent.append(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def _flush(self) -> None:
        """Send what is queued at once: each write would wake the process."""
        process = self._process
        if self._unsent and self.is_alive and process is not None and process.stdin is not None:
            process.stdin.write(b"".join(self._unsent))
            self._unsent.clear()

    async def _reply(self, identifier: int) -> Any:
        """The result of a request; replies to later requests may come before it."""
        while identifier not in self._early:
            message = await self._receive()
            if "method" not in message:
                self._early[int(message["id"])] = message
            elif "id" in message:  # it asks the client for something; we offer nothing
                self._send({"id": message["id"], "result": None})
        message = self._early.pop(identifier)
        if "error" in message:
            raise ServerLostError(f"the type checker refused a request: {message['error']}")
        return message.get("result")

    async def _receive(self) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise ServerLostError("the type checker is not running")
        try:
            self._flush()
            await process.stdin.drain()
            size = _content_length(await process.stdout.readuntil(b"\r\n\r\n"))
            message = json.loads(await process.stdout.readexactly(size))
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise ServerLostError(
                f"the type checker ended or broke the protocol: {type(error).__name__}"
            ) from error
        if not isinstance(message, dict):
            raise ServerLostError("the type checker broke the protocol")
        return message  # pyright: ignore[reportUnknownVariableType]


def _content_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            size = int(value)
            if 0 <= size <= _MAX_MESSAGE:
                return size
    raise ValueError("a message without a valid length")


def _initialize(root: str) -> dict[str, Any]:
    return {
        "processId": os.getpid(),
        "rootUri": root,
        "workspaceFolders": [{"uri": root, "name": "scripts"}],
        "initializationOptions": {"diagnosticMode": "openFilesOnly"},
        "capabilities": {
            "general": {"positionEncodings": [_ENCODING]},
            "textDocument": {
                "diagnostic": {"relatedInformation": True},
                "publishDiagnostics": {"relatedInformation": True},
            },
            "notebookDocument": {"synchronization": {"dynamicRegistration": False}},
        },
    }


def _notebook(notebook: str, uris: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    return {
        "notebookDocument": {
            "uri": notebook,
            "notebookType": "jupyter-notebook",
            "version": 1,
            "cells": [{"kind": 2, "document": uri} for uri in uris],
        },
        "cellTextDocuments": [
            {"uri": uri, "languageId": "python", "version": 1, "text": text}
            for uri, text in zip(uris, cells, strict=True)
        ],
    }


def _findings(result: Any) -> tuple[Finding, ...]:
    try:
        return tuple(_finding(item) for item in result["items"])
    except (KeyError, TypeError, ValueError) as error:
        raise ServerLostError("the type checker answered in an unknown form") from error


def _finding(item: Any) -> Finding:
    start, end = item["range"]["start"], item["range"]["end"]
    return Finding(
        rule=str(item.get("code") or ""),
        severity=int(item.get("severity") or 1),
        line=int(start["line"]) + 1,
        column=int(start["character"]),
        end_line=int(end["line"]) + 1,
        end_column=int(end["character"]),
        message=str(item["message"]),
        related=tuple(
            (str(other["location"]["uri"]), str(other.get("message") or ""))
            for other in item.get("relatedInformation") or ()
        ),
    )


def _bound(pid: int) -> None:
    """Keep one hostile script from taking the machine: memory and processor time of the process are bounded."""
    try:
        import resource

        resource.prlimit(pid, resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.prlimit(pid, resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    except (ImportError, AttributeError, OSError):  # not this platform: the time-out alone bounds it
        return
