"""Search over documents: BM25 against an independent reading of its formula, meaning, fusion, 20,000 documents."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from affidavit.errors import UsageError
from affidavit.mounts.documents.vectors import Vectors, build_vectors
from affidavit.mounts.search.fusion import fused
from tests.mounts.documents.folders import mounted, some_documents, written

ASKED = {
    "d1.txt": "parseHttpHeader splits raw header lines",
    "d2.txt": "use the read-only flag for snapshots",
    "d3.txt": "parse a header of a wav file",
    "d4.txt": "MAX_RETRY_COUNT limits attempts",
    "d5.txt": "",
    "d6.txt": "日本語のデータベースを検索する",
    "d7.txt": "El Niño y la piñata: acción",
    "d8.txt": 'quotes " and AND NOT NEAR(x, y) * ^ : {col} - here',
    "d9.txt": "한국어 문서를 검색합니다",
    "e1.txt": "การค้นหาข้อความ",
}


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("http header", "d1"),
        ("parseHttpHeader", "d1"),
        ("HTTPHeader", "d1"),
        ("read-only", "d2"),
        ("retry count", "d4"),
        ("max_retry_count", "d4"),
        ("検索", "d6"),
        ("データベース", "d6"),
        ("語", "d6"),
        ("nino accion", "d7"),
        ("NIÑO", "d7"),
        ("NEAR(x, y)", "d8"),
        ("검색", "d9"),
        ("ค้นหา", "e1"),
    ],
)
async def test_the_fitting_document_is_first(tmp_path: Path, query: str, first: str) -> None:
    async with mounted(written(tmp_path / "notes", ASKED)) as docs:
        reply = await docs.call("search", query=query)
    assert reply["hits"][0]["row"]["path"] == f"{first}.txt"
    assert reply["matched"] == len(reply["hits"])


@pytest.mark.parametrize(
    "query", ["", "   ", "zebra", '"', "*", "- -", "^:{}", "\0", "😀", "text:zebra", "zebra*"]
)
async def test_nothing_in_a_question_is_syntax(tmp_path: Path, query: str) -> None:
    async with mounted(written(tmp_path / "notes", ASKED)) as docs:
        reply = await docs.call("search", query=query)
    assert [hit["row"]["path"] for hit in reply["hits"] if "text" not in query] == []


async def test_scores_are_those_of_the_formula(tmp_path: Path) -> None:
    texts = some_documents(200, seed=7)
    words = {path: re.findall(r"\w+", text) for path, text in texts.items()}
    average = sum(map(len, words.values())) / len(words)
    async with mounted(written(tmp_path / "notes", texts)) as docs:
        for question in (["kalo", "mine"], [words["00/00000.txt"][0], words["01/00001.txt"][3]]):
            expected: dict[str, float] = {}
            for word in question:
                holding = [path for path in words if word in words[path]]
                rarity = math.log((len(words) - len(holding) + 0.5) / (len(holding) + 0.5))
                for path in holding:
                    often = Counter(words[path])[word]
                    length = 0.25 + 0.75 * len(words[path]) / average
                    part = max(rarity, 1e-6) * often * 2.2 / (often + 1.2 * length)
                    expected[path] = expected.get(path, 0.0) + part
            reply = await docs.call("search", query=" ".join(question), limit=100)
            found = {hit["row"]["path"]: hit["score"] for hit in reply["hits"]}
            assert reply["matched"] == len(expected)
            assert found.keys() <= expected.keys()
            for path, score in found.items():
                assert score == pytest.approx(expected[path], abs=1e-5)


async def test_twenty_thousand_documents(tmp_path: Path) -> None:
    texts = some_documents(20_000)
    root = written(tmp_path / "notes", texts | {"needle/one.md": "# Needle\n\nIn a haystack of documents"})
    async with mounted(root) as docs:
        assert docs.description.summary == "20001 documents in 20001 chunks"
        reply = await docs.call("search", query="needle haystack")
        assert [hit["row"]["id"] for hit in reply["hits"]] == ["needle/one.md#1"]
        assert (await docs.call("files.count"))["count"] == 20_001
        word = texts["42/00042.txt"].split()[0]
        expected = sum(word in text.split() for text in texts.values())
        assert (await docs.call("search", query=word))["matched"] == expected
    written(root, {"needle/two.md": "a second needle"})
    async with mounted(root) as docs:
        assert (await docs.call("search", query="needle"))["matched"] == 2


class Hashed:
    """Texts as counts of their words, each at a place that its digest gives."""

    name = "hashed"
    version = "1"
    dimensions = 64

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> bytes:
        import struct

        self.seen += texts
        data = b""
        for text in texts:
            row = [0.0] * self.dimensions
            for word in text.lower().split():
                row[hashlib.sha256(word.encode()).digest()[0] % self.dimensions] += 1.0
            data += struct.pack(f"<{self.dimensions}f", *row)
        return data


def rows(*texts: str) -> list[tuple[int, list[dict[str, str | None]]]]:
    made = [{"id": f"{text}#1", "digest": "d", "heading": None, "text": text} for text in texts]
    return [(1, made[:2]), (3, made[2:])]


def test_vectors_are_compared_with_all_and_taken_over_where_nothing_changed(tmp_path: Path) -> None:
    embedder = Hashed()
    first = tmp_path / "first"
    build_vectors(first, embedder, rows("red apple", "green pear", "blue sky"), 3, old=None, known=iter(()))
    vectors = Vectors(first, embedder)
    assert len(vectors) == 3
    best = vectors.nearest("green pear", 2)
    assert best[0] == (2, 1.0)
    assert len(best) == 2
    assert vectors.nearest("", 5) == []
    embedder.seen.clear()
    second = tmp_path / "second"
    known = rows("red apple", "green pear", "blue sky")
    build_vectors(second, embedder, rows("new", "blue sky", "red apple"), 3, old=first, known=known)
    assert embedder.seen == ["new"]
    assert Vectors(second, embedder).nearest("blue sky", 1) == [(2, 1.0)]


def test_fusion_prefers_what_both_rankings_name() -> None:
    assert [item for item, _ in fused([["a", "b", "c"], ["c", "d"]], 10)] == ["c", "a", "b", "d"]
    assert fused([], 3) == []
    assert fused([["a"]], 3) == [("a", round(1 / 61, 6))]


async def test_meaning_finds_what_words_do_not(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    texts = {
        "car.txt": "An automobile goes quickly along the highway.",
        "bread.txt": "A recipe for baking banana bread in the oven.",
        "law.txt": "The court decided the appeal in favour of the plaintiff.",
    }
    async with mounted(written(tmp_path / "notes", texts), {"embedder": "wordllama"}) as docs:
        for query, path in (
            ("fast cars", "car.txt"),
            ("cake", "bread.txt"),
            ("judges and lawsuits", "law.txt"),
        ):
            similar = await docs.call("find_similar", query=query, limit=2)
            assert similar["hits"][0]["row"]["path"] == path
            assert (similar["matched"], len(similar["hits"])) == (3, 2)
            assert (await docs.call("search", query=query))["hits"] == []
            assert (await docs.call("hybrid", query=query))["hits"][0]["row"]["path"] == path
        both = await docs.call("hybrid", query="banana automobile")
        assert {hit["row"]["path"] for hit in both["hits"][:2]} == {"car.txt", "bread.txt"}
        with pytest.raises(UsageError, match="limit-invalid"):
            await docs.call("hybrid", query="x", limit=101)
    async with mounted(tmp_path / "notes") as docs:
        assert not {"find_similar", "hybrid"} & docs.namespace.operations.keys()
