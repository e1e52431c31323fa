"""Folders of documents for tests."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from affidavit.mounts.documents.adapter import DocumentsAdapter
from tests.mounts.sources import Opened, opened

__all__ = ["made_pdf", "mounted", "some_documents", "written"]


def written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A folder with these files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def some_documents(count: int, seed: int = 1) -> dict[str, str]:
    """Documents of random words, most of them frequent and some rare, as words are in texts."""
    chosen = random.Random(seed)
    syllables = ["ka", "lo", "mi", "ne", "ru", "sa", "to", "ve", "xi", "zu"]
    words = ["".join(chosen.choices(syllables, k=chosen.randint(2, 4))) for _ in range(5_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    return {
        f"{number % 100:02}/{number:05}.txt": " ".join(
            chosen.choices(words, weights, k=chosen.randint(20, 120))
        )
        for number in range(count)
    }


def made_pdf(pages: Sequence[str]) -> bytes:
    """A PDF with one line of text on each page."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() for text in pages]
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, stream in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * at} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    body, places = b"%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + b"xref\n0 %d\n0000000000 65535 f \n%btrailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1, table, len(objects) + 1, len(body),
    )  # fmt: skip


@asynccontextmanager
async def mounted(folder: Path, options: Mapping[str, Any] | None = None) -> AsyncGenerator[Opened]:
    """A mounted folder; what is derived is kept beside it."""
    async with opened(DocumentsAdapter(), f"dir:{folder.name}", folder.parent, options) as found:
        yield found
