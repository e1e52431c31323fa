"""Secrets of a mount: named in its options, read from the environment at each call, shown nowhere.

What a variable held is replaced by its name wherever it would show: in values, errors, descriptions. So a reply that
echoes a token has the same evidence id whatever the token was.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, quote_plus, urlsplit

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.operation import Handler, Namespace, Operation, Reply

__all__ = ["Secrets", "expand", "refuse_credentials", "refuse_userinfo", "shielded"]

SHORTEST: Final = 6
"""Shorter values are no secrets: replacing each `1` or `on` would only destroy what is shown."""

_REFERENCE: Final = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_SENSITIVE: Final = re.compile(r"(?i)auth|cookie|credential|key|password|secret|token")
_SUB_DELIMS: Final = "/:@!$&'()*+,;="
_Error = TypeVar("_Error", bound=AffidavitError)


class Secrets:
    """The environment variables that one mount used so far.

    Args:
        environment: where values are read, each time anew.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._shown: dict[str, str] = {}

    def get(self, name: str) -> str:
        """The value of a variable; from now on it is redacted.

        Raises:
            UsageError: `secret-missing`.
        """
        value = self._environment.get(name)
        if value is None:
            raise UsageError(
                "secret-missing",
                f"the environment variable {name} is not set",
                hint=f"set {name} where affidavit runs; the mount names it",
                details={"name": name},
            )
        if len(value) >= SHORTEST:
            found = self._shown | dict.fromkeys(_forms(value), f"[{name}]")
            # the longest first: one form may be a part of another
            self._shown = dict(sorted(found.items(), key=lambda item: -len(item[0])))
        return value

    def text(self, text: str) -> str:
        """`text` without any secret."""
        for form, shown in self._shown.items():
            if form in text:
                text = text.replace(form, shown)
        return text

    def excerpt(self, text: str) -> str:
        """`text`, which was cut out of a longer one, without any secret and without the half of one at its ends."""
        text = self.text(text)
        for form, shown in self._shown.items():
            for length in range(len(form) - 1, SHORTEST - 1, -1):
                if text.endswith(form[:length]):
                    text = text[:-length] + shown
                if text.startswith(form[-length:]):
                    text = shown + text[length:]
        return text

    def value(self, value: JsonValue) -> JsonValue:
        """`value` without any secret, in keys and bytes as well. Where there is none, it is the same object."""
        return self._without(value, self.text) if self._shown else value

    def error(self, error: _Error) -> _Error:
        """The same error without any secret: what it quotes of a reply may be cut."""
        if self._shown:
            error.message, error.hint = self.excerpt(error.message), self.excerpt(error.hint)
            error.details = self._without(error.details, self.excerpt)
            error.args = (error.message,)
        return error

    def _without(self, value: JsonValue, shown: Callable[[str], str]) -> JsonValue:
        if isinstance(value, str):
            return shown(value)
        if isinstance(value, bytes):
            return self._bytes(value)
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {self._without(key, shown): self._without(item, shown) for key, item in items}
        if isinstance(value, (list, tuple)):
            return [self._without(item, shown) for item in cast("list[Any]", value)]
        return value

    def _bytes(self, value: bytes) -> bytes:
        for form, shown in self._shown.items():
            value = value.replace(form.encode(), shown.encode())
        return value


def expand(text: str, secret: Callable[[str], str]) -> str:
    """`text` with each `env:NAME` in it replaced by that variable's value.

    >>> expand("Bearer env:TOKEN", lambda name: name.lower())
    'Bearer token'
    """
    return _REFERENCE.sub(lambda match: secret(match[1]), text)


def refuse_credentials(what: str, name: str, text: str) -> None:
    """Refuse an option whose name says that it is secret and whose text does not refer to the environment.

    Raises:
        UsageError: `mount-invalid`.
    """
    if _SENSITIVE.search(name) and not _REFERENCE.search(text):
        raise UsageError(
            "mount-invalid",
            f"{what} {name} holds its value itself, and options are kept in the log",
            hint=f"put the value into an environment variable and write {name}=env:VARIABLE",
        )


def refuse_userinfo(url: str) -> None:
    """Refuse a URL that holds a password.

    Raises:
        UsageError: `mount-invalid`.
    """
    parts = urlsplit(url)
    if parts.password is not None or (parts.username is not None and parts.scheme in ("http", "https")):
        raise UsageError(
            "mount-invalid",
            "the URL holds a user or password, and URLs of mounts are kept in the log",
            hint="name an environment variable instead, for example --header Authorization='Basic env:NAME'",
        )


def shielded(namespace: Namespace, secrets: Secrets) -> Namespace:
    """The namespace with no secret in what its operations return or raise."""
    return replace(
        namespace,
        operations={
            name: replace(operation, handler=_shield(operation, secrets))
            for name, operation in namespace.operations.items()
        },
        children={name: shielded(child, secrets) for name, child in namespace.children.items()},
    )


def _shield(operation: Operation, secrets: Secrets) -> Handler:
    async def handler(arguments: dict[str, Any], /) -> Reply:
        try:
            return _cleaned(await operation.handler(arguments), secrets)
        except AffidavitError as error:
            raise secrets.error(error) from None
        except Exception as error:  # an adapter is foreign code: whatever it raises is the call's failure
            words = secrets.text(str(error))
            details = {"type": type(error).__name__, "message": words}
            message = f"{operation.contract}: {type(error).__name__}: {words}"
            raise FailedError("tool-failed", message, details=details) from None

    return handler


def _cleaned(reply: Reply, secrets: Secrets) -> Reply:
    limitations = tuple(
        replace(it, place=secrets.text(it.place), message=secrets.text(it.message))
        for it in reply.limitations
    )
    outside = secrets.value(dict(reply.outside))
    return replace(reply, value=secrets.value(reply.value), outside=outside, limitations=limitations)


def _forms(value: str) -> set[str]:
    """How a value may look where it shows: as it is, in JSON, in URLs, in basic authentication."""
    encoded = base64.b64encode(value.encode("utf-8", "surrogateescape")).decode()
    in_json = json.dumps(value)[1:-1]
    forms = {value, in_json, json.dumps(value, ensure_ascii=False)[1:-1], encoded, encoded.rstrip("=")}
    # which characters URLs leave as they are differs from writer to writer
    escaped = {quote(value, safe=safe, errors="replace") for safe in ("", "/", ":", "/:", "/:@", _SUB_DELIMS)}
    return forms | escaped | {quote_plus(value, errors="replace")}
