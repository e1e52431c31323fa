"""What libraries log of a far side, without what it said: a reply may repeat a secret, and logs are kept.

Everything that goes wrong is told by the call that it belongs to, without secrets; a log says only that, and where.
"""

from __future__ import annotations

import logging
from typing import Final

import httpx2

__all__ = ["keep_discreet"]

# `client` is how the MCP SDK calls the log of its sessions.
_TALKATIVE: Final = (
    "client", "mcp.client.client", "mcp.client.streamable_http", "mcp.shared.jsonrpc_dispatcher",
    "httpcore2.connection", "httpcore2.http11", "httpcore2.http2",
)  # fmt: skip


class _WhereAlone(logging.Filter):
    """Drops what is not a warning, and of warnings keeps the place."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "client" and "/mcp/" not in record.pathname.replace("\\", "/"):
            return True  # somebody else's
        if record.levelno < logging.WARNING:
            return False
        record.msg = (
            f"{record.filename}:{record.lineno} told of something, left out here as it may hold a secret"
        )
        record.args = record.exc_info = record.exc_text = None
        return True


class _WithoutQuery(logging.Filter):
    """Keeps queries and reasons out of the log of requests: keys of APIs stand in the one, any words in the other."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple) and any(isinstance(it, httpx2.URL) for it in record.args):
            kept = [it.copy_with(query=None) if isinstance(it, httpx2.URL) else it for it in record.args]
            record.args = (*kept[:-1], "")
        return True


_PLACES: Final = _WhereAlone()
_REQUESTS: Final = _WithoutQuery()


def keep_discreet() -> None:
    """From now on. May be called again: the same filter is added once."""
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_PLACES)
    logging.getLogger("httpx2").addFilter(_REQUESTS)
