"""Signatures beside files."""

from __future__ import annotations

import io

import pytest

from affidavit.errors import UsageError, VerificationError
from affidavit.evidence.canonical import canonical, parse
from affidavit.evidence.verification.signing import check_signature, sign

pytest.importorskip("cryptography")

# Ed25519 keys of these tests alone, as `openssl genpkey -algorithm ed25519` makes them.
PRIVATE = b"""-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
"""
PUBLIC = b"""-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
"""
OTHER = b"""-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=
-----END PUBLIC KEY-----
"""
FILE = b'{"affidavit":"bundle/1"}'


def test_a_signature_fits_its_file_and_key_only() -> None:
    signature = sign(io.BytesIO(FILE), PRIVATE)
    fields = check_signature(io.BytesIO(FILE), signature, PUBLIC)
    assert fields["algorithm"] == "ed25519"
    assert sign(io.BytesIO(FILE), PRIVATE) == signature
    for file, key in ((FILE + b" ", PUBLIC), (FILE, OTHER)):
        with pytest.raises(VerificationError) as caught:
            check_signature(io.BytesIO(file), signature, key)
        assert caught.value.code == "signature-invalid"


def test_every_byte_of_a_signature_counts() -> None:
    signature = sign(io.BytesIO(FILE), PRIVATE)
    for offset in range(len(signature)):
        for flip in (1, 2, 128):
            changed = bytearray(signature)
            changed[offset] ^= flip
            with pytest.raises(VerificationError):
                check_signature(io.BytesIO(FILE), bytes(changed), PUBLIC)


def test_a_signature_for_another_digest_is_no_signature_of_this_file() -> None:
    json = parse(sign(io.BytesIO(b"another file"), PRIVATE))
    mine = parse(sign(io.BytesIO(FILE), PRIVATE))
    json["file"] = mine["file"]
    with pytest.raises(VerificationError, match="does not fit"):
        check_signature(io.BytesIO(FILE), canonical(json), PUBLIC)


def test_what_is_no_key_is_refused() -> None:
    for key in (b"", b"ed25519", PUBLIC):
        with pytest.raises(UsageError) as caught:
            sign(io.BytesIO(FILE), key)
        assert caught.value.code == "signature-invalid"
    with pytest.raises(UsageError):
        check_signature(io.BytesIO(FILE), sign(io.BytesIO(FILE), PRIVATE), PRIVATE)


def test_other_versions_are_refused_by_name() -> None:
    changed = sign(io.BytesIO(FILE), PRIVATE).replace(b"signature/1", b"signature/2")
    with pytest.raises(VerificationError, match="signature/2") as caught:
        check_signature(io.BytesIO(FILE), changed, PUBLIC)
    assert caught.value.code == "format-unknown"
