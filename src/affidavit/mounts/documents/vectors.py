"""Vectors of the meaning of chunks: one file of float32 rows of length 1, compared one by one with the question's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from affidavit.errors import FailedError
from affidavit.evidence.files import optional
from affidavit.extensions import Embedder

__all__ = ["MAX_VECTORS", "Vectors", "build_vectors"]

MAX_VECTORS: Final = 200_000
"""Chunks that are compared one by one; a folder with more has no search by meaning."""

_DIGITS: Final = 4
_AT_ONCE: Final = 256


class Vectors:
    """The vectors of one state of a folder, in the order of its chunks.

    Args:
        path: the file that `build_vectors` wrote.
        embedder: what made them.
    """

    def __init__(self, path: Path, embedder: Embedder) -> None:
        numpy = _numpy()
        self._embedder = embedder
        whole = numpy.fromfile(path, dtype=numpy.float32)
        self._rows = whole.reshape(-1, embedder.dimensions)

    def __len__(self) -> int:
        return len(self._rows)

    def nearest(self, text: str, limit: int) -> list[tuple[int, float]]:
        """Numbers, from 1, and cosine similarities of the chunks nearest to a text; equal ones by number."""
        numpy = _numpy()
        asked = _unit(self._embedder.embed([text]), self._embedder.dimensions)[0]
        if not len(self._rows) or not asked.any():
            return []
        scores = numpy.round((self._rows @ asked).astype(float), _DIGITS)
        best = numpy.lexsort((numpy.arange(len(scores)), -scores))[:limit]
        return [(int(place) + 1, float(scores[place])) for place in best if self._rows[place].any()]


def build_vectors(
    path: Path,
    embedder: Embedder,
    chunks: Iterable[tuple[int, list[dict[str, Any]]]],
    total: int,
    *,
    old: Path | None,
    known: Iterable[tuple[int, list[dict[str, Any]]]],
) -> None:
    """Write the vectors of a folder's chunks, whole or not at all.

    Args:
        path: where they go.
        embedder: what makes them.
        chunks: the chunks, in order.
        total: how many there are.
        old: vectors of an earlier state, where they may be.
        known: the chunks of that state: those of files that are the same are taken over.

    Raises:
        FailedError: `value-too-large` for more than `MAX_VECTORS` chunks, `extra-missing`, `store-unwritable`.
    """
    if total > MAX_VECTORS:
        hint = "mount a part of it, or without an embedder"
        message = f"the folder has {total:,} chunks, and {MAX_VECTORS:,} are the bound for vectors"
        raise FailedError("value-too-large", message, hint=hint)
    numpy = _numpy()
    earlier = _earlier(old, embedder, known)
    handle, name = tempfile.mkstemp(prefix=".building-", dir=path.parent)
    building = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for _, rows in chunks:
                for first in range(0, len(rows), _AT_ONCE):
                    some = rows[first : first + _AT_ONCE]
                    fresh = [row for row in some if _name(row) not in earlier]
                    made = _unit(embedder.embed([_said(row) for row in fresh]), embedder.dimensions)
                    new = {_name(row): vector for row, vector in zip(fresh, made, strict=True)}
                    vectors = [new[_name(row)] if _name(row) in new else earlier[_name(row)] for row in some]
                    file.write(numpy.asarray(vectors, dtype=numpy.float32).tobytes())
            file.flush()
            os.fsync(file.fileno())
        building.replace(path)
    except OSError as error:
        raise FailedError("store-unwritable", f"vectors cannot be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            building.unlink()


def _earlier(
    old: Path | None, embedder: Embedder, known: Iterable[tuple[int, list[dict[str, Any]]]]
) -> Mapping[tuple[str, str], Any]:
    if old is None or not old.exists():
        return {}
    numpy = _numpy()
    rows = numpy.fromfile(old, dtype=numpy.float32).reshape(-1, embedder.dimensions)
    return {
        _name(row): rows[first - 1 + at]
        for first, some in known
        for at, row in enumerate(some)
        if first - 1 + at < len(rows)
    }


def _name(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["id"], row["digest"]


def _said(row: Mapping[str, Any]) -> str:
    heading = row["heading"]
    return f"{heading}\n{row['text']}" if heading else row["text"]


def _unit(data: bytes, dimensions: int) -> Any:
    """Rows of length 1 of an embedder's bytes; a row of zeros stays one."""
    numpy = _numpy()
    rows = numpy.frombuffer(data, dtype="<f4").reshape(-1, dimensions).astype(numpy.float32)
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return rows / numpy.where(lengths > 0, lengths, 1)


def _numpy() -> Any:
    return optional("numpy", "vectors")
