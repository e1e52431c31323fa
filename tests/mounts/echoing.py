"""An HTTP server of this process that answers with what it was asked, or with what a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Asked:
    """One request, as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        return {"method": self.method, "path": self.path, "body": self.body.decode("utf-8", "replace")}


Answer = tuple[int, dict[str, str], bytes]


@dataclass(slots=True)
class Echo:
    """The server: its URL, and every request so far. `answer` may be set to another answer."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list[Asked])
    answer: Callable[[Asked], Answer] = field(
        default=lambda asked: (200, {"Content-Type": "application/json"}, json.dumps(asked.json()).encode())
    )


@contextmanager
def echoing() -> Generator[Echo]:
    echo = Echo()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            echo.asked.append(asked)
            status, said, content = echo.answer(asked)
            self.send_response(status)
            for name, value in said.items():
                self.send_header(name, value)
            if "Content-Length" not in said:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    echo.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield echo
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
