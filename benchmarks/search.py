"""Part: BM25 over 20,000 documents, against tantivy."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from affidavit.mounts.documents.library import Library
from affidavit.mounts.search.index import TextIndex, add_texts, build_index, create_tables
from affidavit.mounts.search.terms import read_question
from benchmarks.measure import PEERS, ROOT, Contestant, rounds
from benchmarks.report import Comparison, Section

DOCUMENTS = 20_000
QUESTIONS = 100
ROUNDS = 7
PYTHON = ROOT / ".cache" / "bench-venv" / "bin" / "python"


def measure() -> list[Section]:
    texts, questions = _texts(), _questions()
    section = Section(f"Search by words over {DOCUMENTS:,} documents of 20 to 120 words")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = TextIndex(_index(folder / "first", texts))
        turns: dict[str, Callable[[], float]] = {
            "ours": lambda: _asked(ours, questions),
            "ours index": lambda: _timed(lambda: _index(folder / "index", texts)),
        }
        peer = _peer(folder, texts)
        if peer is not None:
            turns["tantivy"] = lambda: peer.ask(ask=questions)["seconds"]
            turns["tantivy index"] = lambda: peer.ask(build=str(folder / "texts.json"))["seconds"]
        taken = rounds(turns, ROUNDS)
        if peer is not None:
            section.comparisons = [
                Comparison(
                    what=f"{QUESTIONS} questions of 1 to 4 words, best ten",
                    ours=taken["ours"], against="tantivy", theirs=taken["tantivy"],
                ),
                Comparison(
                    what="index of the texts, on the disk", ours=taken["ours index"],
                    against="tantivy, in memory", theirs=taken["tantivy index"],
                ),
            ]  # fmt: skip
            found = peer.ask(ask=questions)["found"]
            same = [
                len(set(theirs) & set(_best(ours, question)))
                for theirs, question in zip(found, questions, strict=True)
            ]
            alike = sum(same) / max(1, sum(map(len, found)))
            section.notes.append(
                f"{alike:.0%} of tantivy's best ten are among ours; equal scores are ordered otherwise."
            )
            peer.close()
        else:
            section.notes.append("tantivy was left out: `make bench` installs it.")
        ours.close()
        section.comparisons += _folders(folder / "notes", texts)
    return [section]


def _folders(folder: Path, texts: list[str]) -> list[Comparison]:
    """Mounting a folder again, as it is and with one changed file, against the first time."""
    for number, text in enumerate(texts):
        path = folder / f"{number % 100:02}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    library = Library(folder, folder.parent / "cache", None)

    def read() -> None:
        library.update()[1].close()

    def update() -> float:
        return _timed(read)

    first, again = update(), [update() for _ in range(3)]
    changed: list[float] = []
    for turn in range(3):
        (folder / "00" / "0.txt").write_text(f"changed {turn}")
        changed.append(update())
    return [
        Comparison(what="mounting the folder again", ours=again, against="the first time", theirs=[first]),
        Comparison(what="... with one file changed", ours=changed, against="the first time", theirs=[first]),
    ]


def _asked(index: TextIndex, questions: list[str]) -> float:
    return _timed(lambda: [_best(index, question) for question in questions])


def _best(index: TextIndex, question: str) -> list[int]:
    return [number for number, _ in index.search(read_question(question), 10).hits]


def _timed(turn: Callable[[], object]) -> float:
    started = time.perf_counter()
    turn()
    return time.perf_counter() - started


def _index(path: Path, texts: list[str]) -> Path:
    def fill(database: sqlite3.Connection) -> None:
        create_tables(database)
        add_texts(database, enumerate(texts))

    build_index(path, fill)
    return path


def _peer(folder: Path, texts: list[str]) -> Contestant | None:
    if not os.access(PYTHON, os.X_OK):
        return None
    there = (
        subprocess.run([PYTHON, "-c", "import tantivy"], check=False, stderr=subprocess.DEVNULL).returncode
        == 0
    )
    if not there:
        return None
    (folder / "texts.json").write_text(json.dumps(texts))
    peer = Contestant([str(PYTHON), str(PEERS / "search_tantivy.py")])
    peer.ask(build=str(folder / "texts.json"))
    return peer


def _words() -> tuple[list[str], list[float]]:
    chosen = random.Random(1)
    syllables = ["ka", "lo", "mi", "ne", "ru", "sa", "to", "ve", "xi", "zu"]
    words = ["".join(chosen.choices(syllables, k=chosen.randint(2, 4))) for _ in range(5_000)]
    return words, [1 / (rank + 10) for rank in range(len(words))]


def _texts() -> list[str]:
    words, weights = _words()
    chosen = random.Random(2)
    return [" ".join(chosen.choices(words, weights, k=chosen.randint(20, 120))) for _ in range(DOCUMENTS)]


def _questions() -> list[str]:
    words, weights = _words()
    chosen = random.Random(3)
    return [" ".join(chosen.choices(words, weights, k=chosen.randint(1, 4))) for _ in range(QUESTIONS)]
