"""Every error of the product, on one page.

```
AffidavitError              code, message, hint, details, retryable, exit_code
├── UsageError              the caller's words or arguments are wrong          exit 2
├── NotFoundError           the named thing is not there                       exit 3
├── VerificationError       stored bytes or evidence do not hold               exit 4
├── RefusedError            policy, a grant or a budget said no                exit 5
└── FailedError             it was allowed and well-formed, and it failed      exit 1
    └── RejectedError       a script was refused before it ran                 exit 1
```

`code` is one of the keys of `CODES`, a closed vocabulary: programs branch on it. `message` says what happened and
where, `hint` says the next step. A failed call is hashed as its code and details only, so words may be
improved without changing any evidence id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "CODES",
    "AffidavitError",
    "FailedError",
    "NotFoundError",
    "RefusedError",
    "RejectedError",
    "UsageError",
    "VerificationError",
]

CODES: Final[Mapping[str, str]] = {
    # values and canonical form
    "value-unsupported": "a value that records cannot hold; details.path names it",
    "value-too-deep": "nesting beyond the depth bound",
    "value-too-large": "more bytes than the bound for this place allows",
    "json-invalid": "text that is not JSON, or JSON with a repeated key",
    # stored things
    "store-damaged": "the workspace database or a record in it does not hold",
    "store-version": "the workspace was written by a newer version",
    "store-busy": "another process kept the workspace locked too long",
    "store-full": "no room left on the disk of the workspace",
    "store-missing": "there is no workspace at this place",
    "store-unwritable": "the workspace's folder or files cannot be written",
    "name-invalid": "a name or address that keys and paths cannot hold",
    "journal-failed": "the journal cannot be written, so nothing may go on as if it were recorded",
    "journal-damaged": "a journal that does not hold: lines are damaged, missing, moved or changed",
    "journal-version": "the journal was written by a newer version, or is no journal",
    "journal-mismatch": "the journal is of another session or is ahead of the workspace",
    "bundle-damaged": "a bundle that is malformed or whose contents do not hold",
    "format-unknown": "a file of a format or version that this version does not read",
    "file-exists": "a file that would be overwritten",
    "signature-invalid": "a signature that is not of this file and key",
    "extra-missing": "an optional part that is not installed",
    "blob-damaged": "a blob's bytes do not have its digest",
    "blob-missing": "a blob is referred to and not there",
    "facts-damaged": "a fact file cannot be read as what its name says",
    "evidence-not-found": "no record has this id here",
    "evidence-ambiguous": "a shortened id that several records have",
    # unknowns
    "unknown-invalid": "an unknown that does not hold together; details.field names the field",
    "unknown-not-found": "no unknown has this id here",
    "unknown-ambiguous": "a shortened id that several unknowns have",
    "revision-conflict": "another revision came first; details.revision is the current one",
    # queries
    "cursor-mismatch": "a cursor of another snapshot, selector, order or contract version",
    "cursor-invalid": "a cursor that this product did not issue",
    "selector-invalid": "`where` names an unknown field or holds a value of another type",
    "limit-invalid": "`limit` or `offset` outside its bounds",
    "item-not-found": "no item has this id in the collection",
    "graph-too-large": "a graph with more blocks or edges than its bounds allow",
    "graph-invalid": "blocks and edges that make no graph: an id is missing, repeated or of another type",
    # operations
    "operation-unknown": "no operation has this name",
    "arguments-invalid": "arguments that the input schema refuses; details.path names the place",
    "result-invalid": "the far side returned what its own schema refuses",
    "schema-unsupported": "a JSON Schema that cannot be used as an operation's contract",
    "path-missing": "a value has nothing at the path that was asked for; details.path names it",
    "value-unfit": "a value is not of the kind that was asked for; details.path names it",
    "tool-failed": "the called tool reported or raised an error",
    "call-refused": "policy refused the call: its effect is not granted",
    "budget-exceeded": "the run spent its calls, bytes or seconds",
    # scripts
    "script-syntax": "the script is not Python",
    "script-rejected": "the check proved an error before running",
    "script-error": "the script raised an exception",
    "script-exit": "the script called exit()",
    "call-not-awaited": "an operation was called and never awaited, so it did not run",
    "timed-out": "the run passed its wall or CPU limit and was stopped",
    "memory-exceeded": "the run passed its memory limit",
    "output-exceeded": "the script printed or returned more than its limit",
    "recursion": "the script recursed too deeply",
    "cancelled": "the run was cancelled",
    "engine-lost": "the sandbox process ended without an answer",
    "engine-unavailable": "the asked engine cannot run here, or not isolated",
    "engine-unsupported": "the engine cannot run this script as Python means it",
    "session-busy": "the session is running a script already",
    "run-orphaned": "the process that ran the script ended before the script was settled",
    "key-reused": "an idempotency key that belongs to another request",
    "session-not-found": "no session has this id",
    "run-not-found": "no run has this id",
    "result-unavailable": "an earlier run has no such value: it failed, or its value is no longer kept",
    "replay-impossible": "a run that did not end by itself, or whose log lacks what a replay needs",
    "reuse-invalid": "an earlier script that cannot be run with these values; details.places lists what it holds",
    "preamble-invalid": "a preamble entry that would bring a problem with it; details.line names its line",
    "preamble-not-found": "no preamble entry has this key",
    "answer-invalid": "the answer envelope is malformed or cites what was never recorded",
    # artifacts and mounts
    "artifact-not-found": "no file or folder at this place",
    "artifact-changed": "a mounted file is no longer what was mounted; mount it again",
    "artifact-unsupported": "no analyzer reads files of this kind",
    "artifact-damaged": "the container as a whole cannot be read",
    "analysis-failed": "the analysis ended without facts",
    "analysis-needed": "a question about all of an artifact that was only outlined; details.command looks into it",
    "mount-invalid": "a mount's name or URI is malformed",
    "mount-exists": "the name is taken by another mount",
    "mount-not-found": "no mount has this name",
    "mount-failed": "what stands behind a mount cannot be reached or does not answer as it should",
    "project-invalid": "the project file is malformed; details.path names the place",
    "reply-cached": "a reply that was observed before the call that it answers",
    "content-left-out": "a part of a reply that its value does not hold",
    "secret-missing": "an environment variable that a mount's options name is not set",
    # limitations: places in a dataset that could not be examined
    "entry-unsafe": "a container entry whose name or link leaves the container",
    "entry-damaged": "a container entry whose place, size or digest does not hold",
    "entry-missing": "a container entry whose bytes are not there",
    "entry-too-large": "a container entry above the size bound",
    "entry-unreadable": "a container entry that may not be read",
    "entry-skipped": "a container entry that was left out on purpose",
    "table-unreadable": "a table or view of a database that cannot be read",
    "parse-error": "a range of a source file that the grammar could not read",
    "parse-timed-out": "a source file that could not be parsed in time",
    "parse-failed": "a source file that ended its parser",
    "encoding": "a source file that is not UTF-8",
    "flow-unresolved": "a place in code from which it is not known where the flow goes on",
    "table-unproven": "a jump table whose number of entries nothing in the code proves",
    "code-undecodable": "a place that the flow reaches and where there is no instruction",
    # the rest
    "usage": "the command line is malformed",
    "interrupted": "stopped by the user",
    "internal": "a fault of this product; please report it",
}


class AffidavitError(Exception):
    """Root of every error that this product raises on purpose.

    Attributes:
        code: one of `CODES`.
        message: what happened and where, one line.
        hint: the next step, or empty.
        details: JSON values for programs.
        retryable: whether the same call may succeed later, unchanged.
    """

    exit_code: int = 1

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        details: Mapping[str, Any] | None = None,
        retryable: bool = False,
    ) -> None:
        if code not in CODES:
            raise AssertionError(f"undeclared error code {code!r}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        self.retryable = retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")

    def as_json(self) -> dict[str, Any]:
        """The error as every door shows it: code, message, hint, retryable, details."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "details": self.details,
        }


class UsageError(AffidavitError):
    """The caller's words or arguments are wrong; the same call never succeeds."""

    exit_code = 2


class NotFoundError(AffidavitError):
    """The named thing is not there."""

    exit_code = 3


class VerificationError(AffidavitError):
    """Stored bytes or evidence do not hold."""

    exit_code = 4


class RefusedError(AffidavitError):
    """Policy, a grant or a budget said no."""

    exit_code = 5


class FailedError(AffidavitError):
    """It was allowed and well-formed, and it failed."""


class RejectedError(FailedError):
    """A script was refused before it ran."""
