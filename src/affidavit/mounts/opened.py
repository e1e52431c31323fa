"""The mounts of one workspace that adapters serve: which adapter, what it says, and what stays open.

Adapters come in by entry point, ours like a stranger's; one that does not load stops no other. A mount is opened when a
session first needs it and stays open until the workspace closes, so connections outlive a session. What was mounted
for one session alone is opened for that session alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence import values
from affidavit.evidence.canonical import freeze, parse
from affidavit.evidence.record import BlobRef, JsonValue
from affidavit.extensions import (
    MOUNTS,
    Description,
    Mount,
    MountAdapter,
    Snapshot,
    Source,
    analyzer_scheme,
    load_mounts,
)
from affidavit.mounts.mounted import Asked, Mounted, names_scheme
from affidavit.mounts.observed import is_untyped, observed, seen_lately
from affidavit.mounts.secrets import Secrets, shielded
from affidavit.mounts.seeds import HELPERS, helpers_namespace, operations_of, read_helpers
from affidavit.mounts.sql.claims import is_ours
from affidavit.namespaces.operation import Namespace
from affidavit.store import Store

__all__ = ["OpenMounts"]

WRAP: Final = "wrap"
"""The option that every mount takes, whatever its adapter."""

_HEAD_BYTES: Final = 4096
_MAX_CONTENTS: Final = 64 << 20
_MAX_NOTICES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    mount: Mount
    namespace: Namespace


class OpenMounts:
    """What is mounted through adapters.

    Args:
        cache: a folder for what adapters derive from their sources.
        store: where descriptions are kept, and replies were.
        environment: where the values of named environment variables are read.
    """

    def __init__(self, cache: Path, store: Store, environment: Mapping[str, str] = os.environ) -> None:
        self._cache = cache
        self._store = store
        self._environment = environment
        self._adapters: dict[str, MountAdapter] | None = None
        self._faults: dict[str, Exception] = {}
        self._open: dict[bytes, _Opened] = {}
        self._notices: dict[str, None] = {}

    def adapter_for(self, uri: str, folder: Path) -> MountAdapter | None:
        """The adapter that a URI belongs to, or None when it is a file or folder for an analyzer, or names one.

        Raises:
            UsageError: `mount-invalid` for a URI that several adapters claim, or a scheme that none does.
        """
        if analyzer_scheme(uri) is not None:
            return None
        head = _head(folder, uri)
        if self._adapters is None and _is_plain(uri, head):
            return None
        claims = [adapter for adapter in self._loaded().values() if _claims(adapter, uri, head)]
        if len(claims) > 1:
            names = " and ".join(adapter.name for adapter in claims)
            hint = "write the URI with the scheme of one of them"
            raise UsageError("mount-invalid", f"{uri!r} is claimed by {names}", hint=hint)
        if claims:
            return claims[0]
        if names_scheme(uri) and not head and not (folder / uri).exists():
            broken = "; ".join(
                f"{name} cannot be loaded: {type(error).__name__}: {error}"
                for name, error in self._faults.items()
            )
            raise UsageError(
                "mount-invalid",
                f"no mount adapter takes {uri.partition(':')[0]}:" + (f" ({broken})" if broken else ""),
                hint=f"there are {', '.join(self._loaded())}; `affidavit doctor` shows what is missing",
            )
        return None

    async def describe(self, adapter: MountAdapter, asked: Asked, *, project: bool) -> Mounted:
        """Ask a source what it offers and keep that; the mount is in force when its event is logged.

        Raises:
            AffidavitError: whatever the adapter raises, without secrets; `mount-failed` for anything else.
        """
        secrets = Secrets(self._environment)
        source = self._source(asked.name, asked.uri, asked.folder, asked.options, secrets)
        _wrapped(Namespace(name=asked.name), asked.options)  # a wrapper that cannot be is told now
        try:
            described = await adapter.describe(source)
            helpers = (*described.helpers, *read_helpers(asked.options.get(HELPERS, []), asked.folder))
            for module in helpers:
                operations_of(module)
            contents = self._kept(described, secrets)
        except AffidavitError as error:
            raise secrets.error(error) from None
        except Exception as error:  # an adapter is foreign code
            words = secrets.text(f"{type(error).__name__}: {error}")
            raise FailedError("mount-failed", f"{asked.name} cannot be mounted: {words}") from None
        return Mounted(
            name=asked.name,
            kind=adapter.name,
            uri=asked.uri,
            project=project,
            limitations=tuple(
                replace(it, place=secrets.text(it.place), message=secrets.text(it.message))
                for it in described.limitations
            ),
            place=adapter.place,
            folder=str(asked.folder),
            options=asked.options,
            contents=contents,
            about=secrets.text(described.summary),
            snapshot=described.snapshot,
            helpers=helpers,
        )

    def namespace(self, mounted: Mounted) -> Namespace:
        """The operations of a mount, as `or_empty`."""

        def opened() -> Namespace:
            namespace = replace(self._opened(mounted).namespace, left_out=mounted.left_out)
            return (
                observed(namespace, seen_lately(self._store.evidence)) if is_untyped(namespace) else namespace
            )

        return self.or_empty(mounted.name, opened)

    def library(self, mounts: Iterable[Mounted]) -> dict[str, Namespace]:
        """`df.lib` where mounts bring anything. A name that two bring is told."""
        library, twice = helpers_namespace(module for mounted in mounts for module in mounted.helpers)
        for name in twice:
            self.tell(f"df.lib.{name} is brought by two mounts; the first one stands")
        return {"lib": library} if library.operations else {}

    def or_empty(self, name: str, made: Callable[[], Namespace]) -> Namespace:
        """What a mount offers. One that cannot be opened is empty and told, and stops nothing else."""
        try:
            return made()
        except AffidavitError as error:
            problem = f"mount {name} cannot be loaded: {error.message}"
        except Exception as error:  # an adapter is foreign code
            problem = f"mount {name} cannot be loaded: {type(error).__name__}: {error}"
        self.tell(f"{problem}; affidavit mount remove {name} takes it away")
        return Namespace(name=name, doc=problem)

    async def snapshot(self, mounted: Mounted) -> Snapshot:
        """Ask which state of a mount's source answers now. Raises `AffidavitError` when that cannot be told."""
        return await self._opened(mounted).mount.snapshot()

    def tell(self, notice: str) -> None:
        """Note what a person should be told, once."""
        if len(self._notices) < _MAX_NOTICES:
            self._notices[notice] = None

    def notices(self) -> list[str]:
        """What a person should be told."""
        return list(self._notices)

    def adapters(self) -> dict[str, MountAdapter | Exception]:
        """Every registered adapter by name, or why it cannot be loaded."""
        return {**self._loaded(), **self._faults}

    async def close(self) -> None:
        """Close every open mount; one that fails stops no other."""
        opened, self._open = self._open, {}
        closed = [asyncio.wait_for(one.mount.close(), timeout=10.0) for one in opened.values()]
        await asyncio.gather(*closed, return_exceptions=True)

    def _opened(self, mounted: Mounted) -> _Opened:
        known = self._open.get(mounted.key())
        if known is not None:
            return known
        adapter = self._loaded().get(mounted.kind)
        if adapter is None:
            problem = self._faults.get(mounted.kind)
            why = f" ({type(problem).__name__}: {problem})" if problem else ""
            raise UsageError("mount-invalid", f"there is no mount adapter {mounted.kind!r} here{why}")
        secrets = Secrets(self._environment)
        source = self._source(
            mounted.name, mounted.uri, Path(mounted.folder or "/"), mounted.options, secrets
        )
        contents = self._contents(mounted)
        mount = adapter.open(source, contents)
        namespace = shielded(mount.namespace, secrets)
        namespace = _wrapped(namespace, mounted.options)
        opened = _Opened(mount=mount, namespace=namespace)
        self._open[mounted.key()] = opened
        return opened

    def _source(
        self, name: str, uri: str, folder: Path, options: Mapping[str, JsonValue], secrets: Secrets
    ) -> Source:
        def tell(notice: str) -> None:
            self.tell(f"mount {name}: {secrets.text(notice)}")

        return Source(
            name=name,
            uri=uri,
            folder=folder,
            options={key: value for key, value in options.items() if key not in (WRAP, HELPERS)},
            secret=secrets.get,
            tell=tell,
            cache=self._cache,
        )

    def _contents(self, mounted: Mounted) -> JsonValue:
        return (
            values.decode(parse(self._store.blobs.get(mounted.contents.digest))) if mounted.contents else None
        )

    def _kept(self, described: Description, secrets: Secrets) -> BlobRef:
        data = freeze(secrets.value(described.contents)).data
        if len(data) > _MAX_CONTENTS:
            raise FailedError(
                "value-too-large",
                f"the description has {len(data)} bytes, and {_MAX_CONTENTS} are the bound",
                hint="mount a part of it",
            )
        return self._store.blobs.put(data)

    def _loaded(self) -> dict[str, MountAdapter]:
        if self._adapters is None:
            self._adapters = {}
            for point, loaded in load_mounts():
                if isinstance(loaded, Exception):
                    self._faults[point.name] = loaded
                else:
                    self._adapters[loaded.name] = loaded
        return self._adapters


def _wrapped(namespace: Namespace, options: Mapping[str, JsonValue]) -> Namespace:
    if WRAP not in options:
        return namespace
    from affidavit.mounts.wrappers import wrapped

    return wrapped(namespace, options[WRAP])


def _is_plain(uri: str, head: bytes) -> bool:
    """Whether no adapter claims a URI, as far as that shows without loading any: half of the time of a start.

    All of ours claim what names their scheme, and the one for databases also files.
    """
    if names_scheme(uri) or is_ours(uri, head):
        return False
    return all(point.value.startswith("affidavit.mounts.") for point in entry_points(group=MOUNTS))


def _claims(adapter: MountAdapter, uri: str, head: bytes) -> bool:
    try:
        return adapter.probe(uri, head)
    except Exception:  # an adapter is foreign code: one that cannot even look does not get the mount
        return False


def _head(folder: Path, uri: str) -> bytes:
    """The first bytes of the file when the URI is the path of one."""
    try:
        path = folder / Path(uri).expanduser()
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except (OSError, ValueError, RuntimeError):
        return b""
