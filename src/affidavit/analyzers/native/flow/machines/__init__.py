"""Machines: what recursive descent and the reading of values ask of each, behind `flow.decoding.Decoder`."""

from __future__ import annotations

from affidavit.analyzers.native.flow.decoding import Decoder
from affidavit.analyzers.native.loading.image import Image

__all__ = ["decoder_of"]


def decoder_of(image: Image) -> Decoder:
    """The decoder of an image's machine. Only that machine's library is imported."""
    if image.machine == "aarch64":
        from affidavit.analyzers.native.flow.machines.aarch64 import AArch64Decoder

        return AArch64Decoder(image)
    from affidavit.analyzers.native.flow.machines.x86 import X86Decoder

    return X86Decoder(image)
