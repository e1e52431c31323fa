"""An MCP server on raw standard streams that does what no server should. Started by tests."""

import json
import os
import sys
import time
from typing import Any

OUT = sys.stdout.buffer
Json = dict[str, Any]
EMPTY: Json = {"type": "object", "properties": {}}
NODE: Json = {"$ref": "#/$defs/Node"}
RECURSIVE: Json = {
    "type": "object",
    "properties": {"root": NODE, "mode": {"enum": ["fast", None, 3]}},
    "required": ["root"],
    "$defs": {"Node": {"type": "object", "properties": {"child": NODE, "n": {"type": "integer"}}}},
}
TOOLS: dict[str, Json] = {
    "invalid_utf8": EMPTY, "infinite": EMPTY, "half_surrogate": EMPTY, "wide": EMPTY, "image": EMPTY,
    "no_base64": EMPTY, "die": EMPTY, "hold": EMPTY, "next": EMPTY, "seen": EMPTY, "flood": EMPTY, "noisy": EMPTY,
    "deep": EMPTY, "secret": EMPTY, "slowly": EMPTY, "nothing": EMPTY, "changed": EMPTY, "beside": EMPTY,
    "leaks": EMPTY, "storm": EMPTY,
    "echo": {"type": "object", "properties": {"class": {}, "per-page": {}, "self": {}}, "additionalProperties": True},
    "tree": RECURSIVE, "class": EMPTY, "a-b": EMPTY, "a_b": EMPTY,
    "looped": {"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}},
               "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
    "elsewhere": {"type": "object", "properties": {"x": {"$ref": "https://example.org/x.json"}}},
}  # fmt: skip
HINTS: dict[str, Json] = {
    "next": {"readOnlyHint": True},
    "die": {"destructiveHint": True, "readOnlyHint": True},
    "seen": {},
}


def send(document: object) -> None:
    OUT.write(json.dumps(document).encode() + b"\n")
    OUT.flush()


def text(words: str) -> Json:
    return {"content": [{"type": "text", "text": words}]}


def listed() -> list[Any]:
    tools: list[Any] = [
        {"name": n, "description": n, "inputSchema": s, "annotations": HINTS.get(n)} for n, s in TOOLS.items()
    ]
    tools += [
        {"name": f"tool-{number}", "description": "one of many", "inputSchema": RECURSIVE}
        for number in range(int(os.environ.get("MANY", "0")))
    ]
    if "BREACH" in os.environ:
        tools.append({"name": "breach", "inputSchema": {"type": "string"}})
        tools += [7, {"inputSchema": EMPTY}, {"name": "wordless"}, {"name": ["x"], "inputSchema": EMPTY}]
        tools.append({"name": "hints", "inputSchema": EMPTY, "annotations": {"readOnlyHint": "perhaps"}})
        tools.append({"name": "out", "inputSchema": EMPTY, "outputSchema": [1]})
        torn = {
            "type": "object",
            "description": "\ud800",
            "properties": {"\ud800": {"description": "\udc00"}},
        }
        tools += [
            {"name": "torn \ud800", "description": "half \ud800", "inputSchema": torn, "title": "\ud800"}
        ]
        tools += [{"name": "torn too \ud800", "inputSchema": {"$ref": "https://\ud800/"}}]
        tools.append({"name": "after", "description": "a good one", "inputSchema": EMPTY})
    for tool in tools[: len(TOOLS)]:
        if tool["annotations"] is None:
            del tool["annotations"]
    return tools


seen: list[object] = []
held: list[int] = []
OUT.write(b"starting up\n")
OUT.flush()
sys.stderr.write("last words of the server\n")
for line in sys.stdin:
    message: Json = json.loads(line)
    seen.append(
        [
            message["method"],
            message.get("params", {}).get("name") or message.get("params", {}).get("requestId"),
        ]
    )
    if "id" not in message:
        continue
    number, method = message["id"], message["method"]
    params: Json = message.get("params") or {}
    head = b'{"jsonrpc": "2.0", "id": %d, "result": ' % number
    if method == "initialize":
        send({"jsonrpc": "2.0", "id": number, "result": {
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "odd server", "version": "1"}}})  # fmt: skip
        continue
    if method == "tools/list":
        send({"jsonrpc": "2.0", "id": number, "result": {"tools": listed()}})
        continue
    if method != "tools/call":
        send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}})
        continue
    name = params["name"]
    result: Json = text(name)
    if name == "invalid_utf8":
        OUT.write(head + b'{"content": [{"type": "text", "text": "caf\xe9"}]}}\n')
    elif name == "infinite":
        OUT.write(head + b'{"content": [], "structuredContent": {"rows": [1, 1e400]}}}\n')
    elif name == "half_surrogate":
        OUT.write(head + b'{"content": [], "structuredContent": {"t": "\\ud800"}}}\n')
    elif name == "deep":
        OUT.write(
            head + b'{"content": [], "structuredContent": {"t": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}}\n"
        )
    elif name == "flood":
        OUT.write(head + b'"' + b"x" * int(os.environ["FLOOD"]))
    elif name == "die":
        os._exit(3)
    elif name == "hold":
        held.append(number)
    else:
        while held and name != "seen":
            send({"jsonrpc": "2.0", "id": held.pop(), "result": text("late")})
        if name == "wide":
            result = {"content": [], "structuredContent": {"id": 2**63 + 1, "x": 1.0}}
        elif name == "image":
            result = {"content": [{"type": "text", "text": "a"},
                                  {"type": "image", "data": "AAEC", "mimeType": "image/png"}]}  # fmt: skip
        elif name == "no_base64":
            result = {"content": [{"type": "image", "data": "%%", "mimeType": "image/png"}]}
        elif name == "beside":
            result = {"content": [{"type": "image", "data": "AAEC", "mimeType": "image/png"}],
                      "structuredContent": {"n": 1}}  # fmt: skip
        elif name == "seen":
            result = {"content": [], "structuredContent": {"seen": seen}}
        elif name == "noisy":
            OUT.write(b'DEBUG 1\n{}\n[1]\nnull\n\n\xff\xfe\n{"jsonrpc": "2.0", "id": 99999, "result": {}}\n')
        elif name == "secret":
            result = text(f"it is {os.environ.get('TOKEN')} and {sorted(os.environ)}")
        elif name == "leaks":
            token = os.environ["TOKEN"]
            OUT.write(f"DEBUG token={token}\n".encode())
            OUT.write(
                b'{"jsonrpc": "2.0", "id": %d, "result": {"content": "%s"}}\n' % (number, token.encode())
            )
            send(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/message",
                    "params": {"level": token, "data": token},
                }
            )
            send(
                {
                    "jsonrpc": "2.0",
                    "id": 7_000,
                    "method": "sampling/createMessage",
                    "params": {"messages": token},
                }
            )
            sys.stderr.write(f"the token is {token}\n")
            sys.stderr.flush()
            os._exit(4)
        elif name == "storm":
            for done in range(int(os.environ["STORM"])):
                send({"jsonrpc": "2.0", "method": "notifications/message", "params": {
                    "level": "info", "data": "x" * 1000 + str(done)}})  # fmt: skip
        elif name == "echo":
            result = {"content": [], "structuredContent": {"given": params["arguments"]}}
        elif name == "tree":
            result = {"content": [], "structuredContent": params["arguments"]}
        elif name == "nothing":
            result = {"content": []}
        elif name == "changed":
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        elif name == "slowly":
            for done in range(8):
                token = params["_meta"]["progressToken"]
                send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                    "progressToken": token, "progress": done}})  # fmt: skip
                time.sleep(0.1)
        send({"jsonrpc": "2.0", "id": number, "result": result})
    OUT.flush()
