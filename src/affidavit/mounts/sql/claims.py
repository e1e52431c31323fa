"""Which URIs and files are databases and tables, told without loading what reads them."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal

__all__ = ["DUCKDB", "DUCKDB_AT", "SCHEMES", "SQLITE", "TABLE_FILES", "is_ours"]

SCHEMES: Final = ("sqlite:", "duckdb:", "postgresql:", "postgres:")
TABLE_FILES: Final[dict[str, Literal["parquet", "csv", "json"]]] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
SQLITE: Final = b"SQLite format 3\0"
DUCKDB: Final = b"DUCK"
DUCKDB_AT: Final = 8


def is_ours(uri: str, head: bytes) -> bool:
    """Whether a URI is of this adapter; `head` is the beginning of the file whose path it is."""
    if not head:
        return uri.startswith(SCHEMES)
    if head.startswith(SQLITE) or head[DUCKDB_AT:].startswith(DUCKDB):
        return True
    ending = PurePath(uri).suffix.lower()
    if ending == ".json":  # other files end so too: an array of rows is a table
        return head.lstrip().startswith(b"[")
    return ending in TABLE_FILES
