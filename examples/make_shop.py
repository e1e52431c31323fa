"""Makes `shop.db`, a SQLite file with a table of stores, to try mounts with."""

import sqlite3

with sqlite3.connect("shop.db") as database:
    database.execute("DROP TABLE IF EXISTS store")
    database.execute(
        "CREATE TABLE store (city TEXT PRIMARY KEY, sales INTEGER NOT NULL, open INTEGER NOT NULL)"
    )
    database.executemany(
        "INSERT INTO store VALUES (?, ?, ?)", [("Oslo", 120, 1), ("Bergen", 80, 1), ("Bern", 7, 0)]
    )
database.close()
