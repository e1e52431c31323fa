"""The modules that Node.js itself provides (version 20, and what later versions added behind `node:`)."""

from __future__ import annotations

from typing import Final

__all__ = ["BUILTINS", "PREFIX_ONLY", "builtin_name"]

_NAMES: Final = """
    _http_agent _http_client _http_common _http_incoming _http_outgoing _http_server _stream_duplex
    _stream_passthrough _stream_readable _stream_transform _stream_wrap _stream_writable _tls_common _tls_wrap
    assert assert/strict async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel
    dns dns/promises domain events fs fs/promises http http2 https inspector inspector/promises module net os path
    path/posix path/win32 perf_hooks process punycode querystring readline readline/promises repl stream
    stream/consumers stream/promises stream/web string_decoder sys timers timers/promises tls trace_events tty url
    util util/types v8 vm wasi worker_threads zlib
"""

BUILTINS: Final = frozenset(_NAMES.split())

PREFIX_ONLY: Final = frozenset({"sea", "sqlite", "test", "test/reporters"})
"""Those that exist with the `node:` prefix alone; without it the name is an ordinary package."""


def builtin_name(specifier: str) -> str | None:
    """The name without `node:` when the specifier is a builtin module, else None."""
    if specifier.startswith("node:"):
        name = specifier[5:]
        return name if name in BUILTINS or name in PREFIX_ONLY else None
    return specifier if specifier in BUILTINS else None
