"""`affidavit call` and `affidavit describe`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any, cast

import orjson
from cyclopts import Parameter

from affidavit.errors import CODES, AffidavitError, FailedError, NotFoundError, RefusedError, UsageError
from affidavit.evidence import values
from affidavit.interfaces.cli.arguments import read_pairs, read_value
from affidavit.interfaces.cli.mounts import progress_on_stderr
from affidavit.interfaces.cli.output import Common, emit, say
from affidavit.interfaces.cli.records.journal import Journalling
from affidavit.interfaces.cli.show import value_text
from affidavit.namespaces.describe import describe as describe_namespace
from affidavit.policy import parse_grant
from affidavit.runtime.program import CallFailed, CallResult
from affidavit.workspace import Workspace

__all__ = ["call", "call_error", "describe"]

_KINDS: dict[str, type[AffidavitError]] = {
    "operation-unknown": NotFoundError,
    "item-not-found": NotFoundError,
    "evidence-not-found": NotFoundError,
    "arguments-invalid": UsageError,
    "selector-invalid": UsageError,
    "limit-invalid": UsageError,
    "cursor-invalid": UsageError,
    "cursor-mismatch": UsageError,
    "call-refused": RefusedError,
    "budget-exceeded": RefusedError,
}


def call(
    operation: str,
    *pairs: str,
    args: str | None = None,
    mount: Annotated[list[str] | None, Parameter(negative="")] = None,
    session: str | None = None,
    grant: Annotated[list[str] | None, Parameter(negative="")] = None,
    journalling: Journalling = Journalling(),  # noqa: B008
    common: Common = Common(),  # noqa: B008
) -> int:
    """Call one operation and print its result; the call is recorded as a script's would be.

    Args:
        operation: Path below df, for example db.app.modules.page.
        pairs: Arguments as NAME=JSON; a word that is no JSON stands for itself.
        args: All arguments as one JSON object, or @FILE.
        mount: NAME=URI to mount for this session; repeatable.
        session: Session to go on with; a new one by default.
        grant: EFFECT or EFFECT:PATTERN to allow; repeatable.
    """
    arguments = read_pairs(pairs)
    if args is not None:
        whole = read_value(args)
        if not isinstance(whole, dict):
            raise UsageError(
                "usage", "--args is not a JSON object", hint="for example --args '{\"limit\": 10}'"
            )
        arguments = cast("dict[str, Any]", whole) | arguments

    async def body() -> CallResult:
        async with Workspace.open(
            common.workspace,
            tenant=common.tenant,
            grants=[parse_grant(text) for text in grant or []],
            journal=journalling.settings(),
        ) as workspace:
            opened = await workspace.session(session, mounts=mount or [], progress=progress_on_stderr())
            result = await opened.call(operation.removeprefix("df."), arguments)
            for note in workspace.notices():
                say(f"note: {note}")
            return result

    result = asyncio.run(body())
    if isinstance(result, CallFailed):
        raise call_error(result)
    value = orjson.loads(result.json)
    if common.json:
        emit(values.plain(value))
    else:
        sys.stdout.write(value_text(value) + "\n")
    return 0


def call_error(result: CallFailed) -> AffidavitError:
    """The error of a failed call, of the class that its exit code needs."""
    kind = _KINDS.get(result.code, FailedError)
    code = result.code if result.code in CODES else "tool-failed"
    return kind(code, result.message, hint=result.hint, details=result.details, retryable=result.retryable)


def describe(
    *words: str,
    full: Annotated[bool, Parameter(negative="")] = False,
    mount: Annotated[list[str] | None, Parameter(negative="")] = None,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Find operations by words, or show one by its path.

    Args:
        words: Words to look for, or one path such as db.app.modules.page; nothing lists everything.
        full: Show schemas and row types, too.
        mount: NAME=URI to mount for this look; repeatable.
    """

    async def body() -> tuple[object, str]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            opened = await workspace.session(
                None, mounts=mount or [], progress=progress_on_stderr(), keep=False
            )
            path = words[0].removeprefix("df.") if len(words) == 1 and "." in words[0] else ""
            found = describe_namespace(
                opened.catalogue.root, words="" if path else " ".join(words), path=path, full=full
            )
            return found.as_json(), found.text()

    document, text = asyncio.run(body())
    if common.json:
        emit(document)
    else:
        sys.stdout.write(text.rstrip("\n") + "\n")
    return 0
