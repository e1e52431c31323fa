"""The tables and views of a PostgreSQL database that a role may read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from affidavit.mounts.sql.catalogue import Column, Table
from affidavit.mounts.sql.engines.postgres_types import kinds_of

__all__ = ["read_tables"]

_TABLES: Final = """
SELECT c.oid::int8, n.nspname, c.relname, c.relkind = ANY('{v,m}'), c.relkind = 'r' AND NOT c.relhassubclass,
       obj_description(c.oid, 'pg_class')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = ANY('{r,p,v,m,f}') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND (cardinality($1::text[]) = 0 OR n.nspname = ANY($1))
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname
"""
_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, b.typtype = 'e',
       b.typcategory = 'A' OR a.attndims > 0, a.attnotnull, col_description(a.attrelid, a.attnum)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
     JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEYS: Final = """
SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k(attnum, place)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             WHERE k.place <= i.indnkeyatts ORDER BY k.place)
FROM pg_index i
WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
  AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
                  AND NOT a.attnotnull)
ORDER BY i.indisprimary DESC, i.indexrelid LIMIT 1
"""


def read_tables(cursor: Any, schemas: Sequence[str]) -> list[Table]:
    """Every table and view, by schema and name; all schemas when none is named."""
    listed = cursor.execute(_TABLES, [list(schemas)]).fetchall()
    return [_table(cursor, *found) for found in listed]


def _table(
    cursor: Any, number: int, schema: str, name: str, is_view: bool, has_places: bool, comment: str | None
) -> Table:
    columns = tuple(_column(*found) for found in cursor.execute(_COLUMNS, [number]).fetchall())
    keys = cursor.execute(_KEYS, [number]).fetchall()
    key = tuple(keys[0][0]) if keys else ()
    # a key of a type that is shown as text, or that Python may not hold, is no key for scripts
    by_name = {column.name: column for column in columns}
    usable = all(len(by_name[one].kinds) == 1 and not by_name[one].as_text for one in key)
    return Table(
        path=(schema, name),
        kind="view" if is_view else "table",
        columns=columns,
        key=key if usable else (),
        order=key if key and usable else ("ctid",) if has_places else (),
        doc=comment or "",
    )


def _column(
    name: str, declared: str, base: str, is_enum: bool, is_array: bool, not_null: bool, comment: str | None
) -> Column:
    kinds = kinds_of(base, is_enum=is_enum, is_array=is_array)
    return Column(
        name=name,
        declared=declared,
        kinds=kinds or ("str",),
        nullable=not not_null,
        as_text=not kinds,
        doc=comment or "",
    )
