# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases with rows that a test or benchmark chooses, in the schema of the store."""

import pathlib
import re
import sqlite3

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
APPLICATION_ID = 0x5052534D
VERSION = int(re.search(r"#define STORE_VERSION (\d+)", (SOURCE / "store/store.h").read_text("utf-8"))[1])


def create(path):
    """An empty database, open in autocommit mode."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript((SOURCE / "store/schema.sql").read_text("utf-8"))
    db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}")
    return db


def insert(db, table, names, rows, **constants):
    """Rows are tuples for the columns `names`; the other columns have what `constants` says. What neither names is NULL
    where it may be, and else 0 or ''."""
    known = {row[1]: (row[2], row[3] or row[5]) for row in db.execute(f"PRAGMA table_info({table})")}
    unknown = (set(names) | set(constants)) - set(known)
    assert not unknown, f"{table} has no columns {unknown}"
    fixed = {name: constants.get(name, "" if kind == "TEXT" else 0) for name, (kind, required) in known.items()
             if name not in names and (name in constants or required)}
    values = ", ".join("?" * (len(names) + len(fixed)))
    more = tuple(fixed.values())
    db.executemany(f"INSERT INTO {table} ({', '.join([*names, *fixed])}) VALUES ({values})",
                   (tuple(row) + more for row in rows))
