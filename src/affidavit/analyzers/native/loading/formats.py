"""Which kind of binary a file is, told from its first bytes, and the reader of each kind."""

from __future__ import annotations

import struct
import warnings
from typing import BinaryIO, Final, Literal, TypeAlias

from affidavit.analyzers.native.loading.image import DamagedError, Image

__all__ = ["HEAD", "Format", "format_of", "load"]

Format: TypeAlias = Literal["elf", "pe", "mach-o"]

HEAD: Final = 4096
_FAULTS: Final = (
    AttributeError,
    LookupError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)
"""What lief and our reading of it raise where a header holds what none may hold."""

_SLICES: Final = 43  # a Java class file begins with the same magic, and its versions begin above


def format_of(head: bytes) -> Format | None:
    """The kind of a file whose first `HEAD` bytes these are, or None."""
    if head.startswith(b"\x7fELF"):
        return "elf"
    if head.startswith(b"\xcf\xfa\xed\xfe"):
        return "mach-o"
    if head.startswith((b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf")) and len(head) >= 8:
        (slices,) = struct.unpack_from(">I", head, 4)
        return "mach-o" if 0 < slices < _SLICES else None
    if head.startswith(b"MZ") and len(head) >= 64:
        (at,) = struct.unpack_from("<I", head, 60)
        return "pe" if head[at : at + 4] == b"PE\0\0" else None
    return None


def load(file: BinaryIO) -> Image:
    """Read a binary.

    Args:
        file: open for reading, at its start; kept open by nobody.

    Raises:
        DamagedError: it is truncated or contradicts itself.
        UnsupportedError: another machine or kind of file.
    """
    kind = format_of(file.read(HEAD))
    file.seek(0)
    if kind == "elf":
        from affidavit.analyzers.native.loading.elf import load_elf

        return load_elf(file)
    if kind is None:
        raise DamagedError("its first bytes are those of no binary")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lief warns of numbers that it has no names for
        try:
            return _load_foreign(kind, file.read())
        except _FAULTS as error:
            raise DamagedError(
                f"its headers cannot be read: {type(error).__name__}: {error}"[:200]
            ) from error


def _load_foreign(kind: Format, data: bytes) -> Image:
    if kind == "pe":
        from affidavit.analyzers.native.loading.pe import load_pe

        return load_pe(data)
    from affidavit.analyzers.native.loading.macho import load_macho

    return load_macho(data)
