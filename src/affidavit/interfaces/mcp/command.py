"""`affidavit mcp`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from affidavit.errors import FailedError
from affidavit.interfaces.cli.output import Common
from affidavit.interfaces.cli.records.journal import Journalling
from affidavit.policy import parse_grant
from affidavit.runtime.program import Limits

__all__ = ["mcp"]


def mcp(
    *,
    mount: Annotated[list[str] | None, Parameter(negative="")] = None,
    session: str | None = None,
    grant: Annotated[list[str] | None, Parameter(negative="")] = None,
    seconds: float = 300.0,
    cpu_seconds: float = 60.0,
    memory_mb: int = 512,
    calls: int = 10_000,
    journalling: Journalling = Journalling(),  # noqa: B008
    common: Common = Common(),  # noqa: B008
) -> int:
    """Serve an agent over standard input and output, in one session, until it closes them.

    Args:
        mount: NAME=URI to mount for this session; repeatable.
        session: Session to go on with; a new one by default.
        grant: EFFECT or EFFECT:PATTERN to allow, for example external:tool.weather.*; repeatable.
        seconds: Wall seconds that a script may take.
        cpu_seconds: CPU seconds that a script may take.
        memory_mb: Megabytes of memory that a script may use.
        calls: How many calls a script may make.
    """
    try:
        from affidavit.interfaces.mcp.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise FailedError(
            "extra-missing",
            "serving agents needs the package mcp, which is not installed",
            hint="pip install 'affidavit[mcp]'",
        ) from error
    from affidavit.interfaces.mcp.conversation import Settings

    settings = Settings(
        workspace=common.workspace,
        tenant=common.tenant,
        session=session,
        mounts=tuple(mount or ()),
        grants=tuple(parse_grant(text) for text in grant or []),
        limits=Limits(
            wall_seconds=seconds, cpu_seconds=cpu_seconds, memory_bytes=memory_mb << 20, calls=calls
        ),
        journal=journalling.settings(),
    )
    asyncio.run(serve(settings))
    return 0
