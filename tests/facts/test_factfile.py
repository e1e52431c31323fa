"""Fact files: what goes in comes out, the digest is of the facts alone, and nothing broken is ever read."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import stat
import tempfile
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.errors import AffidavitError, FailedError, UsageError, VerificationError
from affidavit.evidence.canonical import freeze
from affidavit.evidence.record import Coverage
from affidavit.evidence.values import encode
from affidavit.facts import _seal
from affidavit.facts.factfile import FactFile, FactFileWriter, analysis_meta
from affidavit.facts.selector import Selector

from .samples import LIMITATIONS, PARTIAL, PATIENT, THINGS, Row, numbered, rows, write

OTHERS = replace(THINGS, name="others", contract="sample.others")
EVERYTHING = Selector()


def stored(facts: FactFile, collection: str = "things") -> list[Any]:
    places = facts.ordinals(collection, EVERYTHING)
    return facts.decode(facts.rows(collection, places))


@settings(PATIENT, max_examples=40)
@given(rows())
def test_rows_come_back_in_order_and_canonical(found: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder, write(Path(folder) / "f", found) as facts:
        bodies = facts.rows("things", range(len(found)))
        assert facts.total("things") == len(found)
        assert bodies == [rfc8785.dumps(encode(row)) for row in found]
        assert freeze(stored(facts)) == freeze(found)


def test_meta_comes_back(tmp_path: Path) -> None:
    with write(tmp_path / "f", [], coverage=PARTIAL, limitations=LIMITATIONS) as facts:
        assert facts.coverage == PARTIAL
        assert facts.limitations == LIMITATIONS
        assert facts.summary == {"files": 3}
        facts.meta["summary"]["files"] = 9
        assert facts.meta["summary"] == {"files": 3}


def test_a_bare_meta_document_says_that_coverage_is_unknown(tmp_path: Path) -> None:
    with FactFileWriter(tmp_path / "f", [THINGS]).finish({}) as facts:
        assert facts.coverage == Coverage(state="unknown", selection="", examined=0)
        assert (facts.limitations, facts.summary) == ((), {})


class TestDigest:
    def test_is_pinned(self, tmp_path: Path) -> None:
        item = {**numbered(1)[0], "detail": "\ud800"}
        with write(tmp_path / "f", numbered(3), items={"t0": item}) as facts:
            assert facts.digest == "sha256:01cebcd3ad0f03d8b265c7e1f43fdae72a24e7784ab55e5a2f8b8481677fcdfa"

    def test_is_of_the_facts_alone(self, tmp_path: Path) -> None:
        digests: set[str] = set()
        for at, order in enumerate([("things", "others"), ("others", "things")]):
            writer = FactFileWriter(tmp_path / f"f{at}", [THINGS, OTHERS])
            for name in order:
                for row in numbered(5):
                    writer.add(name, dict(reversed(row.items())) if at else row)
            with writer.finish({"summary": {"run": at}}) as facts:
                digests.add(facts.digest)
        assert len(digests) == 1

    def test_changes_with_rows_order_items_and_contract(self, tmp_path: Path) -> None:
        changes: list[Callable[[Path], FactFile]] = [
            lambda path: write(path, numbered(3)),
            lambda path: write(path, numbered(3)[::-1]),
            lambda path: write(path, numbered(2)),
            lambda path: write(path, numbered(3, body=None)),
            lambda path: write(path, numbered(3), items={"t0": {**numbered(1)[0], "detail": 1}}),
            lambda path: write(path, numbered(3), spec=replace(THINGS, version=2)),
            lambda path: write(path, [{**row, "body": 1.0} for row in numbered(3)]),
            lambda path: write(path, [{**row, "body": 1} for row in numbered(3)]),
        ]
        digests: list[str] = []
        for at, change in enumerate(changes):
            with change(tmp_path / f"f{at}") as facts:
                digests.append(facts.digest)
        assert len(set(digests)) == len(changes)

    def test_an_item_that_says_no_more_than_its_row_changes_nothing(self, tmp_path: Path) -> None:
        with (
            write(tmp_path / "f", numbered(1)) as one,
            write(tmp_path / "g", numbered(1), items={"t0": dict(reversed(numbered(1)[0].items()))}) as two,
        ):
            assert one.digest == two.digest


class TestWriting:
    def test_takes_the_row_as_it_is_now(self, tmp_path: Path) -> None:
        writer = FactFileWriter(tmp_path / "f", [THINGS])
        row: Row = {"id": "a", "path": "x", "kind": "asset", "body": [1]}
        writer.add("things", row)
        row["path"] = "y"
        row["body"].append(2)
        with writer.finish({}) as facts:
            assert stored(facts) == [{"id": "a", "path": "x", "kind": "asset", "body": [1]}]

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"id": 3}, "id"),
            ({"id": None}, "id"),
            ({"path": 3}, "path"),
            ({"path": b"x"}, "path"),
            ({"size": True}, "size"),
            ({"size": 1.0}, "size"),
            ({"kind": "other"}, "kind"),
        ],
    )
    def test_refuses_fields_that_could_not_be_asked_for(
        self, tmp_path: Path, change: Row, field: str
    ) -> None:
        writer = FactFileWriter(tmp_path / "f", [THINGS])
        writer.add("things", numbered(1)[0])
        with pytest.raises(FailedError) as caught:
            writer.add("things", numbered(1)[0] | change)
        writer.abort()
        assert (caught.value.code, caught.value.details) == ("analysis-failed", {"field": field})
        assert f"sample.things row 1 field '{field}'" in caught.value.message

    @pytest.mark.parametrize("body", [(1,), {1: 2}, {1, 2}, object()])
    def test_refuses_values_that_records_cannot_hold(self, tmp_path: Path, body: Any) -> None:
        writer = FactFileWriter(tmp_path / "f", [THINGS])
        with pytest.raises(UsageError) as caught:
            writer.add("things", numbered(1)[0] | {"body": body})
        writer.abort()
        assert caught.value.code == "value-unsupported"
        assert caught.value.details["path"].startswith("$.body")

    def test_leaves_room_for_the_page_around_a_row(self, tmp_path: Path) -> None:
        deep: Any = None
        for _ in range(89):
            deep = [deep]
        writer = FactFileWriter(tmp_path / "f", [THINGS])
        writer.add("things", numbered(1)[0] | {"body": deep})
        with pytest.raises(UsageError) as caught:
            writer.add("things", numbered(1)[0] | {"body": [deep]})
        writer.abort()
        assert caught.value.code == "value-too-deep"

    def test_refuses_an_undeclared_collection(self, tmp_path: Path) -> None:
        writer = FactFileWriter(tmp_path / "f", [THINGS])
        with pytest.raises(FailedError, match="declares no collection 'nope'"):
            writer.add("nope", numbered(1)[0])
        writer.abort()

    def test_refuses_two_rows_of_one_key(self, tmp_path: Path) -> None:
        writer = FactFileWriter(tmp_path / "f", [THINGS])
        for row in [*numbered(2500), {**numbered(1)[0], "id": "t7"}]:
            writer.add("things", row)
        with pytest.raises(FailedError, match="two rows have the id 't7'"):
            writer.finish({})
        writer.abort()

    def test_two_collections_of_one_name_are_a_fault_of_the_declaration(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="two collections are called things"):
            FactFileWriter(tmp_path / "f", [THINGS, THINGS])

    def test_a_place_that_cannot_be_written_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(AffidavitError) as caught:
            FactFileWriter(tmp_path / "nowhere" / "f", [THINGS])
        assert caught.value.code == "store-full"

    def test_memory_stays_bounded(self, tmp_path: Path) -> None:
        writer = FactFileWriter(tmp_path / "f", [THINGS])
        tracemalloc.start()
        try:
            for at in range(6000):
                writer.add("things", {"id": f"t{at}", "path": None, "kind": "asset", "body": f"{at}" * 2000})
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        with writer.finish({}) as facts:
            assert sum(facts.sizes("things", range(6000))) > 40_000_000
        assert peak < 12_000_000


class TestImmutability:
    def test_the_file_is_read_only(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", numbered(3)) as facts:
            assert stat.S_IMODE(facts.path.stat().st_mode) == 0o400

    def test_reading_changes_no_byte_and_leaves_no_other_file(self, tmp_path: Path) -> None:
        with write(tmp_path / "f", numbered(300)) as facts:
            before = hashlib.sha256(facts.path.read_bytes()).digest()
            facts.count("things", Selector(terms=(("kind", ("script",)),)))
            stored(facts)
        with FactFile.open(tmp_path / "f", [THINGS]):
            pass
        assert hashlib.sha256((tmp_path / "f").read_bytes()).digest() == before
        assert [path.name for path in tmp_path.iterdir()] == ["f"]

    def test_every_where_field_has_an_index(self, tmp_path: Path) -> None:
        write(tmp_path / "f", numbered(3)).close()
        connection = sqlite3.connect(f"{(tmp_path / 'f').as_uri()}?immutable=1", uri=True)
        names = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        }
        connection.close()
        assert {"c0_key", "c0_w0", "c0_w1", "c0_w2", "c0_w3"} <= names

    def test_closing_twice_is_fine(self, tmp_path: Path) -> None:
        facts = write(tmp_path / "f", [])
        facts.close()
        facts.close()
        with pytest.raises(sqlite3.ProgrammingError):
            facts.sizes("things", [0])

    @pytest.mark.parametrize("name", ["a b", "a?b", "a#b", "100%", "\u00e9\U0001f600", "a;b", "'q'"])
    def test_any_place_will_do(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).mkdir()
        with write(tmp_path / name / name, numbered(3)) as facts:
            assert facts.total("things") == 3
        assert [path.name for path in (tmp_path / name).iterdir()] == [name]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "f"
    write(path, numbered(50)).close()
    return path


class TestDamage:
    def refused(self, path: Path) -> VerificationError:
        with pytest.raises(VerificationError) as caught:
            FactFile.open(path, [THINGS])
        assert caught.value.code == "facts-damaged"
        assert str(path) in caught.value.message
        assert "analyze the artifact again" in caught.value.hint
        return caught.value

    @pytest.mark.parametrize("kept", [0, 1, 15, 63, 64, 4096, -65, -64, -1])
    def test_a_cut_file_is_refused(self, good: Path, tmp_path: Path, kept: int) -> None:
        (tmp_path / "f").write_bytes(good.read_bytes()[:kept])
        self.refused(tmp_path / "f")

    @settings(PATIENT, max_examples=80)
    @given(data=st.data())
    def test_a_changed_bit_is_refused(self, good: Path, data: st.DataObject) -> None:
        body = bytearray(good.read_bytes())
        place = data.draw(st.integers(0, len(body) - 1) | st.integers(len(body) - 64, len(body) - 1))
        body[place] ^= 1 << data.draw(st.integers(0, 7))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "f"
            path.write_bytes(body)
            self.refused(path)

    def test_a_longer_file_is_refused(self, good: Path, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(good.read_bytes() + b"\0")
        self.refused(tmp_path / "f")
        (tmp_path / "f").write_bytes(good.read_bytes() * 2)
        self.refused(tmp_path / "f")

    def test_another_kind_of_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_bytes(b"not a database" * 100)
        self.refused(path)
        path.unlink()
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE meta (name, json)")
        connection.close()
        self.refused(path)

    def test_a_sealed_file_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        for statements in [
            [],
            ["PRAGMA application_id = 1095124545"],
            ["PRAGMA application_id = 1095124545", "CREATE TABLE meta (name, json)"],
            [
                "PRAGMA application_id = 1095124545",
                "CREATE TABLE meta (name, json)",
                """INSERT INTO meta VALUES ('digest', '"x"'), ('meta', '{}'), ('collections', '[1]')""",
            ],
        ]:
            path.unlink(missing_ok=True)
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE t (x)")
            for statement in statements:
                connection.execute(statement)
            connection.commit()
            connection.close()
            with path.open("r+b") as file:
                _seal.seal(file)
            self.refused(path)

    def test_noise_under_a_seal_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_bytes(b"noise" * 1000)
        with path.open("r+b") as file:
            _seal.seal(file)
        self.refused(path)

    def test_a_newer_format_is_named(
        self, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copy(good, tmp_path / "f")
        monkeypatch.setattr(_seal, "VERSION", 0)
        error = self.refused(tmp_path / "f")
        assert "has format 1; this version reads format 0" in error.message

    def test_other_collections_are_refused(self, good: Path) -> None:
        for spec in [
            OTHERS,
            replace(THINGS, version=2),
            replace(THINGS, contract="sample.else"),
            replace(THINGS, where=("kind", "path", "size", "mixed", "id")),
            replace(THINGS, where=("path",)),
        ]:
            with pytest.raises(VerificationError) as caught:
                FactFile.open(good, [spec])
            assert caught.value.code == "facts-damaged"

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        self.refused(tmp_path)

    def test_an_absent_file_is_not_damaged(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            FactFile.open(tmp_path / "f", [THINGS])


def test_a_hundred_thousand_rows(tmp_path: Path) -> None:
    writer = FactFileWriter(tmp_path / "f", [THINGS])
    for at in range(100_000):
        kind = "asset" if at % 10 == 0 else "script"
        writer.add(
            "things", {"id": f"t{at}", "path": f"lib/{at % 1000}.js", "kind": kind, "size": at, "body": None}
        )
    meta = analysis_meta(summary={}, coverage=PARTIAL, limitations=())
    with writer.finish(meta) as facts:
        assert facts.total("things") == 100_000
        chosen = facts.ordinals(
            "things", Selector(terms=(("kind", ("asset",)), ("path", ("lib/10.js", "lib/7.js"))))
        )
        assert list(chosen) == list(range(10, 100_000, 1000))
        assert [row["id"] for row in facts.decode(facts.rows("things", chosen[-2:]))] == ["t98010", "t99010"]
        assert facts.count("things", Selector(terms=(("kind", ("asset",)),))) == 10_000
        assert facts.groups("things", EVERYTHING, "kind", 10) == ([("script", 90_000), ("asset", 10_000)], 2)
        assert [row["size"] for row in facts.decode(facts.rows("things", range(99_998, 100_000)))] == [
            99_998,
            99_999,
        ]
