"""Databases and table files, read-only: SQLite, DuckDB (also Parquet, CSV, JSON), PostgreSQL.

| you look for                                  | it is in                          |
|-----------------------------------------------|-----------------------------------|
| what a URI names                              | `sources.py`                      |
| why nothing is written, attached or loaded    | `engines/` (one file an engine)   |
| which types a row has                         | `catalogue.py`, `rows.py`         |
| how a page becomes a statement                | `statements.py`, `tables.py`      |
| a script's own SQL                            | `query.py`                        |
"""
