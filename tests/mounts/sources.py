"""Mounting through an adapter as the product does, without a workspace around it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from affidavit.evidence import values
from affidavit.evidence.canonical import freeze, parse
from affidavit.extensions import Description, Mount, MountAdapter, Source
from affidavit.mounts.secrets import Secrets, shielded
from affidavit.namespaces.operation import Namespace, Operation, Reply


@dataclass(slots=True)
class Opened:
    """A mount, what was said of it, and what it told."""

    mount: Mount
    description: Description
    namespace: Namespace
    notices: list[str] = field(default_factory=list[str])

    def operation(self, path: str) -> Operation:
        namespace = self.namespace
        *steps, name = path.split(".")
        for step in steps:
            namespace = namespace.children[step]
        return namespace.operations[name]

    async def reply(self, path: str, /, **arguments: Any) -> Reply:
        """Call an operation by its original argument names."""
        operation = self.operation(path)
        return await operation.handler(operation.parse(arguments))

    async def call(self, path: str, /, **arguments: Any) -> Any:
        """The value of a call, as the broker hands it on."""
        operation = self.operation(path)
        value = operation.convert((await self.reply(path, **arguments)).value)
        return values.decode(parse(freeze(value).data))


@asynccontextmanager
async def opened(
    adapter: MountAdapter,
    uri: str,
    folder: Path,
    options: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
) -> AsyncGenerator[Opened]:
    """Describe a source and open it from what was kept of that."""
    secrets = Secrets(os.environ if environment is None else environment)
    notices: list[str] = []
    source = Source(
        name="m", uri=uri, folder=folder, options=options or {}, secret=secrets.get, tell=notices.append,
        cache=folder / "cache",
    )  # fmt: skip
    assert adapter.probe(uri, b"")
    description = await adapter.describe(source)
    kept = values.decode(parse(freeze(secrets.value(description.contents)).data))
    mount = adapter.open(source, kept)
    try:
        yield Opened(mount, description, shielded(mount.namespace, secrets), notices)
    finally:
        await mount.close()
