"""What a tool returned, as the value that a script gets.

| the server sends                         | the script gets                                                        |
|------------------------------------------|------------------------------------------------------------------------|
| structured content                       | that, held against the output schema when there is one                 |
| else one block of text                   | the text                                                               |
| else any blocks                          | a list: texts, and mappings with `type` for everything else            |
| nothing                                  | None                                                                   |
| `isError`                                | `df.Error` `tool-failed` with the text                                 |

Images, audio and binary resources are `bytes`.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any, Final, cast

import mcp_types as types

from affidavit.errors import FailedError
from affidavit.evidence.record import JsonValue, Limitation
from affidavit.namespaces.operation import Reply

__all__ = ["reply_of"]

_MAX_WORDS: Final = 16_384


def reply_of(tool: str, result: types.CallToolResult, *, structured: bool) -> Reply:
    """The reply that a result stands for.

    Args:
        tool: the tool's own name.
        result: what the server returned.
        structured: whether the tool declares an output schema, and so must send structured content.

    Raises:
        FailedError: `tool-failed` for an error of the tool; `result-invalid` for a reply that cannot be a value.
    """
    if result.is_error:
        raise _failure(tool, result)
    if result.structured_content is not None:
        left_out = tuple(
            Limitation(
                code="content-left-out",
                place=f"content[{number}]",
                message=f"{block.type} beside the structured content",
            )
            for number, block in enumerate(result.content)
            if block.type != "text"
        )
        return Reply(value=_finite(tool, result.structured_content), limitations=left_out)
    if structured:
        raise FailedError(
            "result-invalid",
            f"{tool} declares an output schema and sent no structured content",
            hint="Report it to the server's authors, or mount with the option output_schemas=false.",
            details={"path": "$"},
        )
    blocks = [_block(tool, number, block) for number, block in enumerate(result.content)]
    if not blocks:
        return Reply(value=None)
    return Reply(value=blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else blocks)


def _failure(tool: str, result: types.CallToolResult) -> FailedError:
    words = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
    details: dict[str, JsonValue] = {"text": words[:_MAX_WORDS]}
    if len(words) > _MAX_WORDS:
        details["cut"] = len(words) - _MAX_WORDS
    if result.structured_content is not None:
        details["structured"] = _finite(tool, result.structured_content)
    first = words.strip().partition("\n")[0][:500] or "it gave no reason"
    return FailedError("tool-failed", f"{tool} reports an error: {first}", details=details)


def _block(tool: str, number: int, block: types.ContentBlock) -> JsonValue:
    if isinstance(block, types.TextContent):
        return block.text
    document: dict[str, Any] = block.model_dump(by_alias=True, mode="json", exclude_none=True)
    document.pop("_meta", None)
    place = f"$.content[{number}]"
    if isinstance(block, (types.ImageContent, types.AudioContent)):
        document["data"] = _bytes(tool, block.data, f"{place}.data")
    elif isinstance(block, types.EmbeddedResource):
        resource = cast("dict[str, Any]", document["resource"])
        resource.pop("_meta", None)
        if isinstance(block.resource, types.BlobResourceContents):
            resource["blob"] = _bytes(tool, block.resource.blob, f"{place}.resource.blob")
    return document


def _bytes(tool: str, text: str, place: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FailedError(
            "result-invalid",
            f"{tool} sent what is no base64, at {place}: {error}",
            hint="The far side breaks the protocol; report it there.",
            details={"path": place},
        ) from None


def _finite(tool: str, value: JsonValue) -> JsonValue:
    """The same value, where it holds no number that JSON cannot say: such a one was too large to be read."""
    stack: list[tuple[JsonValue, str]] = [(value, "$")]
    while stack:
        item, place = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                raise FailedError(
                    "result-invalid",
                    f"{tool} sent a number that no float holds, at {place}",
                    hint="The far side should send it as text.",
                    details={"path": place},
                )
        elif isinstance(item, dict):
            stack.extend((child, f"{place}.{key}") for key, child in cast("dict[str, Any]", item).items())
        elif isinstance(item, list):
            stack.extend((child, f"{place}[{at}]") for at, child in enumerate(cast("list[Any]", item)))
    return value
