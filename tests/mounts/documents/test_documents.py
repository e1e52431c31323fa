"""A folder of documents: what is read with which places, what is left out, what is read again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, NotFoundError, UsageError, VerificationError
from affidavit.mounts.documents import folder as folders
from affidavit.mounts.documents import library
from affidavit.mounts.documents.adapter import DocumentsAdapter
from affidavit.namespaces.stubs import render
from tests import real_inputs
from tests.mounts.documents.folders import made_pdf, mounted, written
from tests.mounts.sources import Opened, opened

NOTES = {
    "guide.md": "# Guide\n\nIntro.\n\n## Headers\n\nparseHttpHeader splits\nraw header lines\n\n"
    "```sh\n# no heading\n```\n\nOther\n=====\n\nlast",
    "page.html": "<title>A &amp; B</title><style>p{}</style>\n<h1>Head</h1>\n<p>One <b>bold</b>\nword"
    "<script>var hidden</script></p><ul><li>first<li>second</ul>",
    "paper.pdf": made_pdf(["Evidence on page one", "Conclusion on page two"]),
    "deep/er/code.py": "def f():\n    return 1\n\n\nclass Éa:\n    pass\n",
    "empty.txt": "",
    "utf16.txt": "Zürich".encode("utf-16"),
}


async def rows(docs: Opened, **arguments: Any) -> list[dict[str, Any]]:
    return (await docs.call("page", **arguments))["rows"]


async def test_chunks_have_their_text_and_place(tmp_path: Path) -> None:
    async with mounted(written(tmp_path / "notes", NOTES)) as docs:
        found = {row["id"]: row for row in await rows(docs)}
        files = {row["path"]: row for row in (await docs.call("files.page"))["rows"]}
        assert docs.description.limitations == ()
        assert "async def search(self, query: str, *, limit: int = 10) -> Hits[ChunksRow]:" in render(
            docs.namespace
        )

    def place(name: str) -> tuple[Any, ...]:
        row = found[name]
        return row["heading"], row["page"], row["line"], row["end_line"], row["text"]

    assert place("guide.md#1") == ("Guide", None, 1, 3, "Guide\n\nIntro.")
    heading, page, line, end, text = place("guide.md#2")
    assert (heading, page, line, end) == ("Guide > Headers", None, 5, 12)
    assert text.startswith("Headers\n\nparseHttpHeader splits\nraw header lines\n\n```sh\n# no heading")
    assert place("guide.md#3") == ("Other", None, 14, 17, "Other\n\nlast")
    assert place("page.html#1") == ("Head", None, 2, 4, "Head\n\nOne bold word\n\nfirst\n\nsecond")
    assert place("paper.pdf#1") == (None, 1, None, None, "Evidence on page one")
    assert place("paper.pdf#2") == (None, 2, None, None, "Conclusion on page two")
    assert place("deep/er/code.py#1") == (None, None, 1, 6, "def f():\n    return 1\n\nclass Éa:\n    pass")
    assert place("utf16.txt#1")[-1] == "Zürich"
    kinds = {path: (row["kind"], row["title"], row["chunks"]) for path, row in files.items()}
    assert kinds == {
        "deep/er/code.py": ("source", None, 1),
        "empty.txt": ("text", None, 0),
        "guide.md": ("markdown", "Guide", 3),
        "page.html": ("html", "A & B", 1),
        "paper.pdf": ("pdf", None, 2),
        "utf16.txt": ("text", None, 1),
    }


async def test_lines_of_chunks_are_the_lines_of_the_file(tmp_path: Path) -> None:
    package = real_inputs.unpacked("typescript")
    target = tmp_path / "package"
    for path in [
        *package.glob("*.md"),
        *package.glob("lib/lib.dom.iterable.d.ts"),
        *package.glob("lib/typescript.d.ts"),
    ]:
        written(target, {path.name: path.read_bytes()})
    async with mounted(target) as docs:
        assert docs.description.limitations == ()
        count = 0
        for name in [path.name for path in target.iterdir()]:
            lines = (target / name).read_text("utf-8-sig").splitlines()
            cursor = None
            while True:
                reply = await docs.reply("page", where={"path": name}, cursor=cursor)
                for row in reply.value["rows"]:
                    count += 1
                    said = [line for line in row["text"].split("\n") if line.strip()]
                    there = [line for line in lines[row["line"] - 1 : row["end_line"]] if line.strip()]
                    if row["kind"] == "source":
                        assert said == there
                    else:
                        assert said[0].strip("# ") in there[0]
                cursor = reply.outside["page.next_cursor"]
                if cursor is None:
                    break
        assert count > 200


async def test_what_cannot_be_read_is_said_with_its_place_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_BYTES", 10_000)
    outside = written(tmp_path / "outside", {"secret.txt": "secret words"})
    root = written(
        tmp_path / "notes",
        {
            "good.txt": "fine",
            "latin.txt": b"first\ncaf\xe9 here",
            "image.png": b"\x89PNG\r\n\0\0",
            "huge.txt": "x" * 10_001,
            "broken.pdf": b"%PDF-1.7\nnothing",
            "cut.pdf": made_pdf(["Hello"])[:300],
            ".git/config": "skipped words",
            "node_modules/a/index.js": "skipped words",
        },
    )
    (root / "loop").symlink_to(root)
    (root / "out").symlink_to(outside)
    (root / "out.txt").symlink_to(outside / "secret.txt")
    (root / "nowhere").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    os.mknod(os.fsencode(root) + b"/odd\xff.txt")
    async with mounted(root) as docs:
        said = {(one.place, one.code) for one in docs.description.limitations}
        assert said >= {
            ("latin.txt", "encoding"),
            ("image.png", "entry-skipped"),
            ("huge.txt", "entry-too-large"),
            ("broken.pdf", "parse-failed"),
            (".git", "entry-skipped"),
            ("node_modules", "entry-skipped"),
            ("loop", "entry-skipped"),
            ("out", "entry-skipped"),
            ("out.txt", "entry-skipped"),
            ("nowhere", "entry-skipped"),
            ("pipe", "entry-skipped"),
            ("'odd\\udcff.txt'", "entry-unsafe"),
        }
        assert [row["text"] for row in await rows(docs, where={"kind": "text"})] == [
            "fine",
            "first\ncaf\ufffd here",
        ]
        for words in ("secret", "skipped"):
            assert (await docs.call("search", query=words))["hits"] == []
        reply = await docs.reply("search", query="fine")
        assert reply.coverage is not None
        assert (reply.coverage.state, reply.coverage.unknown > 8) == ("partial", True)
        assert len(reply.outside["limitations"]) == 10


async def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written(tmp_path / "notes", NOTES | {"latin.txt": b"caf\xe9"})
    read: list[str] = []
    real = library.read_bytes

    def noted(folder: Path, document: folders.Document) -> tuple[bytes, str] | None:
        read.append(document.path)
        return real(folder, document)

    monkeypatch.setattr(library, "read_bytes", noted)
    async with mounted(root) as docs:
        before = await rows(docs)
        said = docs.description.limitations
    assert set(read) == {*NOTES, "latin.txt"}
    read.clear()
    async with mounted(root) as docs:
        assert await rows(docs) == before
    assert read == []
    written(root, {"guide.md": "# New\n\nwords", "more.txt": "added"})
    (root / "empty.txt").unlink()
    async with mounted(root) as docs:
        after = await rows(docs)
        assert docs.description.limitations == said
        assert (await docs.call("search", query="Headers"))["hits"] == []
        assert [hit["row"]["id"] for hit in (await docs.call("search", query="added"))["hits"]] == [
            "more.txt#1"
        ]
    assert set(read) == {"guide.md", "more.txt"}
    kept = [row for row in before if row["path"] != "guide.md"]
    assert [row for row in after if row["path"] not in ("guide.md", "more.txt")] == kept
    fresh = written(tmp_path / "fresh", {})
    for path in root.rglob("*.*"):
        written(fresh, {str(path.relative_to(root)): path.read_bytes()})
    async with opened(DocumentsAdapter(), "dir:fresh", tmp_path) as docs:
        assert await rows(docs) == after  # as if all had been read at once


async def test_a_folder_that_changed_is_refused_until_it_is_mounted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("affidavit.mounts.documents.adapter._LOOK_SECONDS", -1.0)
    root = written(tmp_path / "notes", NOTES)
    async with mounted(root) as docs:
        assert await docs.mount.snapshot() == docs.description.snapshot
        (root / "guide.md").touch()  # the same bytes
        assert (await docs.call("search", query="header"))["matched"] == 1
        written(root, {"new.txt": "new"})
        for path, arguments in (("search", {"query": "x"}), ("page", {}), ("files.count", {})):
            with pytest.raises(VerificationError, match="artifact-changed"):
                await docs.call(path, **arguments)
        (root / "new.txt").unlink()
        assert (await docs.call("search", query="header"))["matched"] == 1


async def test_what_was_derived_is_made_again_when_it_is_gone_or_damaged(tmp_path: Path) -> None:
    root = written(tmp_path / "notes", NOTES)
    derived = tmp_path / "cache" / "documents"
    async with mounted(root) as docs:
        expected = await docs.call("search", query="header page")
    async with mounted(root) as docs:
        for path in derived.iterdir():
            path.unlink()
        assert await docs.call("search", query="header page") == expected
    (facts,) = [path for path in derived.iterdir() if path.suffix == ".facts"]
    facts.chmod(0o600)
    facts.write_bytes(facts.read_bytes()[:5000])
    async with mounted(root) as docs:
        assert await docs.call("search", query="header page") == expected


async def test_equal_folders_answer_alike_wherever_they_are(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one", NOTES), written(tmp_path / "b" / "other", NOTES)
    async with mounted(one) as first, mounted(other) as second:
        assert first.description.contents == second.description.contents
        for path, arguments in (("search", {"query": "header"}), ("page", {"limit": 2}), ("files.count", {})):
            assert await first.reply(path, **arguments) == await second.reply(path, **arguments)


async def test_calls_at_once_share_one_look(tmp_path: Path) -> None:
    async with mounted(written(tmp_path / "notes", NOTES)) as docs:
        calls = [docs.call("search", query=word) for word in ("header", "page", "last", "bold") * 5]
        found = await asyncio.gather(*calls)
    assert all(len(reply["hits"]) >= 1 for reply in found)


async def test_a_hostile_pdf_costs_only_itself(tmp_path: Path) -> None:
    loop = (
        made_pdf(["x"])
        .replace(b"/Parent 2 0 R", b"/Parent 4 0 R")
        .replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")
    )
    root = written(
        tmp_path / "notes",
        {"a.pdf": loop, "b.pdf": made_pdf(["still read"]), "c.pdf": b"%PDF-" + b"(" * 10**6},
    )
    async with mounted(root) as docs:
        assert [row["text"] for row in await rows(docs)] == ["still read"]
        assert {one.place for one in docs.description.limitations} == {"a.pdf", "c.pdf"}


async def test_folders_and_options_that_cannot_be(tmp_path: Path) -> None:
    written(tmp_path, {"file.txt": "x"})
    for uri, error, code in (
        ("dir:nowhere", NotFoundError, "artifact-not-found"),
        ("dir:file.txt", NotFoundError, "artifact-not-found"),
        ("dir:", UsageError, "mount-invalid"),
    ):
        with pytest.raises(error) as caught:
            async with opened(DocumentsAdapter(), uri, tmp_path):
                pass
        assert isinstance(caught.value, AffidavitError)
        assert caught.value.code == code
    for options in ({"embedder": "nobody"}, {"depth": 3}):
        with pytest.raises(UsageError, match="mount-invalid"):
            async with opened(DocumentsAdapter(), "dir:.", tmp_path, options):
                pass
