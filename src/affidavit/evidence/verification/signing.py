r"""Signatures beside files: who vouches for a file, which its contents cannot prove.

```
signature = Ed25519( key, b"affidavit/signature/1\n" + lower-hex SHA-256 of the file )
```

The signature file is one canonical JSON document: `affidavit` (`signature/1`), `algorithm` (`ed25519`), `file` (digest
of the signed file), `public_key` and `signature` (base64). It needs `affidavit[sign]`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any, BinaryIO, Final, cast

from affidavit.errors import AffidavitError, UsageError, VerificationError
from affidavit.evidence.canonical import canonical, parse
from affidavit.evidence.files import optional
from affidavit.evidence.record import JsonValue

__all__ = ["check_signature", "sign"]

FORMAT: Final = "signature/1"
_PREAMBLE: Final = b"affidavit/signature/1\n"
_FIELDS: Final = ["affidavit", "algorithm", "file", "public_key", "signature"]
_BLOCK: Final = 1 << 20
_ED25519: Final = "cryptography.hazmat.primitives.asymmetric.ed25519"
_SERIALIZATION: Final = "cryptography.hazmat.primitives.serialization"


def sign(file: BinaryIO, private_key: bytes) -> bytes:
    """The signature file for a file.

    Args:
        file: open for reading, at its beginning.
        private_key: an Ed25519 key as PEM, without a password.

    Raises:
        UsageError: `signature-invalid`: not such a key.
        FailedError: `extra-missing`.
    """
    key = _private(private_key)
    address = _digest(file)
    public = key.public_key().public_bytes_raw()
    document: JsonValue = {
        "affidavit": FORMAT,
        "algorithm": "ed25519",
        "file": address,
        "public_key": b64encode(public).decode(),
        "signature": b64encode(key.sign(_message(address))).decode(),
    }
    return canonical(document)


def check_signature(file: BinaryIO, signature: bytes, public_key: bytes) -> dict[str, JsonValue]:
    """Check that the holder of a key signed exactly this file; what the signature file says.

    Args:
        file: open for reading, at its beginning.
        signature: the signature file.
        public_key: the key that is trusted, as PEM.

    Raises:
        VerificationError: `signature-invalid`: another file, another key, or no signature of it; `format-unknown`.
        UsageError: `signature-invalid`: `public_key` is not an Ed25519 key.
        FailedError: `extra-missing`.
    """
    trusted = _public(public_key)
    fields = _read(signature)
    address = _digest(file)
    if fields["file"] != address:
        raise _invalid(f"it was made for {fields['file']!a}; this file is {address}")
    if fields["public_key"] != b64encode(trusted.public_bytes_raw()).decode():
        raise _invalid("it was made with another key")
    try:
        made = b64decode(str(fields["signature"]), validate=True)
        if b64encode(made).decode() != fields["signature"]:
            raise ValueError("stray bits")
        trusted.verify(made, _message(address))
    except (optional("cryptography.exceptions", "sign").InvalidSignature, ValueError):
        raise _invalid("it does not fit the file and the key") from None
    return fields


def _read(signature: bytes) -> dict[str, JsonValue]:
    try:
        json = parse(signature)
    except AffidavitError as error:
        raise _invalid(error.message) from None
    fields = cast("dict[str, JsonValue]", json) if isinstance(json, dict) else {}
    found = fields.get("affidavit")
    if found != FORMAT:
        raise VerificationError(
            "format-unknown",
            f"this is {found!a}; this product knows {FORMAT}",
            hint="name the file that `affidavit bundle sign` wrote",
        )
    if sorted(fields) != _FIELDS or fields["algorithm"] != "ed25519" or canonical(fields) != signature:
        raise _invalid("its fields are not those of a signature file")
    return fields


def _digest(file: BinaryIO) -> str:
    hashed = sha256()
    while block := file.read(_BLOCK):
        hashed.update(block)
    return f"sha256:{hashed.hexdigest()}"


def _message(address: str) -> bytes:
    return _PREAMBLE + address.removeprefix("sha256:").encode()


def _private(pem: bytes) -> Any:
    kind = optional(_ED25519, "sign").Ed25519PrivateKey
    try:
        key = optional(_SERIALIZATION, "sign").load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise _no_key(str(error)) from None
    if not isinstance(key, kind):
        raise _no_key("a key of another kind")
    return key


def _public(pem: bytes) -> Any:
    kind = optional(_ED25519, "sign").Ed25519PublicKey
    try:
        key = optional(_SERIALIZATION, "sign").load_pem_public_key(pem)
    except (ValueError, TypeError) as error:
        raise _no_key(str(error)) from None
    if not isinstance(key, kind):
        raise _no_key("a key of another kind")
    return key


def _invalid(problem: str) -> VerificationError:
    return VerificationError(
        "signature-invalid",
        f"the signature does not hold: {problem}",
        hint="ask the signer for both files again",
    )


def _no_key(problem: str) -> UsageError:
    return UsageError(
        "signature-invalid",
        f"not an Ed25519 key in PEM: {problem}",
        hint="`openssl genpkey -algorithm ed25519` makes one, `openssl pkey -pubout` its public half",
    )
