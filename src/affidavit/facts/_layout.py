"""The tables of a fact file: one per collection, named by position so that no declared name ever becomes SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from affidavit.evidence.record import JsonValue
from affidavit.facts.spec import CollectionSpec, FieldType, field_types

__all__ = ["APPLICATION_ID", "META", "Table", "tables_of"]

APPLICATION_ID = 0x41464641
META = "CREATE TABLE meta (name TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Where one collection stands.

    Attributes:
        name: the table, `c0`.
        spec: the collection.
        fields: types of its `where` fields.
        columns: column of each `where` field, in declared order. A field that is the key uses the key's column.
    """

    name: str
    spec: CollectionSpec
    fields: Mapping[str, FieldType]
    columns: Mapping[str, str]

    @property
    def create(self) -> str:
        """The statement that makes the table."""
        own = [column for column in self.columns.values() if column != "key"]
        columns = ", ".join(
            ["ordinal INTEGER PRIMARY KEY", "key NOT NULL", *own, "row BLOB NOT NULL", "item BLOB"]
        )
        return f"CREATE TABLE {self.name} ({columns})"

    @property
    def insert(self) -> str:
        """The statement that adds a row: ordinal, key, own columns in order, row, item."""
        own = [column for column in self.columns.values() if column != "key"]
        marks = ", ".join("?" * (len(own) + 4))
        return f"INSERT INTO {self.name} VALUES ({marks})"  # noqa: S608 - generated names only

    @property
    def indexes(self) -> tuple[str, ...]:
        """The statements that index a filled table; the first makes keys unique."""
        unique = f"CREATE UNIQUE INDEX {self.name}_key ON {self.name} (key)"
        own = [column for column in self.columns.values() if column != "key"]
        return (unique, *(f"CREATE INDEX {self.name}_{column} ON {self.name} ({column})" for column in own))

    def as_json(self) -> dict[str, JsonValue]:
        """What a reader must agree on before it may read the table."""
        spec = self.spec
        return {
            "name": spec.name,
            "contract": spec.contract,
            "version": spec.version,
            "key": spec.key,
            "where": list(spec.where),
        }


def tables_of(collections: Sequence[CollectionSpec]) -> dict[str, Table]:
    """The tables of a fact file by collection name.

    Raises:
        TypeError: a spec is not well-formed, or two have one name.
    """
    tables: dict[str, Table] = {}
    for at, spec in enumerate(collections):
        if spec.name in tables:
            raise TypeError(f"two collections are called {spec.name}")
        columns = {
            field: "key" if field == spec.key else f"w{place}" for place, field in enumerate(spec.where)
        }
        tables[spec.name] = Table(name=f"c{at}", spec=spec, fields=field_types(spec), columns=columns)
    return tables
