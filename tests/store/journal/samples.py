"""Journals for tests."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from affidavit.evidence.identity import seal
from affidavit.store import Store
from affidavit.store.journal import Journal, JournalSettings
from tests.store.samples import event, record


@contextmanager
def journalled(root: Path, session: str = "s1", **settings: Any) -> Generator[tuple[Store, Journal]]:
    """A store in `root/w` whose session is journalled in `root/j`."""
    with Store.open(root / "w") as store:
        journal = Journal.open(store, session, JournalSettings(folder=root / "j", **settings))
        store.follow(session, journal)
        yield store, journal


def written(root: Path, count: int = 6, *, session: str = "s1", **settings: Any) -> Path:
    """A closed journal of so many events, each with a record of its own; its first file."""
    with journalled(root, session, **settings) as (store, _):
        for number in range(count):
            store.append(event(session=session, data={"n": number}), record=record(number))
    return root / "j" / f"{session}.none.jsonl"


def lines(path: Path) -> list[bytes]:
    """The lines of a file with their ends."""
    return [it + b"\n" for it in path.read_bytes().split(b"\n")[:-1]]


def ids(count: int) -> set[str]:
    """The ids of the first records of `written`."""
    return {seal(record(number)).id for number in range(count)}


def kept(store: Store, session: str = "s1") -> list[tuple[Any, ...]]:
    """What a session's events tell, without the numbers that belong to one workspace."""
    return [
        (it.kind, it.session, it.at, it.run, it.key, it.evidence_id, it.data)
        for it in store.events.of_session(session)
    ]
