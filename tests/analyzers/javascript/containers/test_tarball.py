"""npm tarballs, as packers write them and as they should not."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.analyzers.javascript.containers import tar_stream, tarball
from affidavit.analyzers.javascript.containers.entry import read_entry
from affidavit.analyzers.javascript.containers.opening import reads
from affidavit.analyzers.javascript.containers.tar_stream import TarStream, looks_like_tar
from affidavit.analyzers.javascript.containers.tarball import TarballContainer
from affidavit.analyzers.javascript.containers.tree import Tree
from affidavit.errors import FailedError, NotFoundError, VerificationError
from tests.analyzers.javascript.builders import TarEntry, tgz, tgz_of


def listing(tmp_path: Path, archive: bytes) -> tuple[dict[str, bytes | None], dict[str, str]]:
    """Contents of files (None for the rest) and the code of each limitation by place."""
    path = tmp_path / "package.tgz"
    path.write_bytes(archive)
    with closing(TarballContainer(path)) as container:
        found = {
            entry.path: read_entry(container, entry, limit=1 << 24) if entry.kind == "file" else None
            for entry in container.entries
        }
        return found, {one.place: one.code for one in container.limitations}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_what_packers_write_is_read(tmp_path: Path, form: int) -> None:
    long = "/".join(["directory-with-a-name"] * 6) + "/file.js"
    files = {
        "package.json": b"{}",
        "index.js": b"1" * 1000,
        "block.js": b"2" * 512,
        "empty.js": b"",
        long: b"3",
    }
    if form != tarfile.USTAR_FORMAT:
        files |= {"é.js": b"4", "x" * 300 + ".js": b"5"}
    entries = [TarEntry(name=f"package/{name}", data=data) for name, data in files.items()]
    assert listing(tmp_path, tgz(entries, form=form)) == (files, {})


@pytest.mark.parametrize("prefix", ["package/", "other-name/", "./package/", ""])
def test_the_one_top_folder_is_taken_away(tmp_path: Path, prefix: str) -> None:
    files = {"a.js": b"1", "lib/b.js": b"2"}
    assert listing(tmp_path, tgz_of(files, prefix=prefix)) == (files, {})


def test_several_top_folders_are_kept(tmp_path: Path) -> None:
    files = {"a/x.js": b"1", "b/x.js": b"2"}
    assert listing(tmp_path, tgz_of(files, prefix="")) == (files, {})


def test_one_file_alone_is_no_folder(tmp_path: Path) -> None:
    assert listing(tmp_path, tgz_of({"a.js": b"1"}, prefix="")) == ({"a.js": b"1"}, {})


def test_directories_are_listed_when_empty(tmp_path: Path) -> None:
    entries = [TarEntry(name=f"package/{name}", kind=tarfile.DIRTYPE) for name in ("", "full/", "empty/")]
    archive = tgz([*entries, TarEntry(name="package/full/a.js", data=b"1")])
    assert listing(tmp_path, archive) == ({"full/a.js": b"1", "empty": None}, {})


def test_executables(tmp_path: Path) -> None:
    path = tmp_path / "package.tgz"
    path.write_bytes(tgz([TarEntry(name="p/run", mode=0o755), TarEntry(name="p/read", mode=0o600)]))
    with closing(TarballContainer(path)) as container:
        assert {entry.path: entry.executable for entry in container.entries} == {"run": True, "read": False}


def test_the_later_of_two_equal_names_counts_and_it_is_said(tmp_path: Path) -> None:
    archive = tgz([TarEntry(name="package/a.js", data=b"old"), TarEntry(name="package/a.js", data=b"new")])
    assert listing(tmp_path, archive) == ({"a.js": b"new"}, {"a.js": "entry-skipped"})


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up.js", "package/../../up.js", "a\\b.js", "package//../x", "C:\\x"]
)
def test_names_that_leave_cost_themselves(tmp_path: Path, name: str) -> None:
    archive = tgz([TarEntry(name=name, data=b"bad"), TarEntry(name="package/good.js", data=b"good")])
    found, limitations = listing(tmp_path, archive)
    assert (found, list(limitations.values())) == ({"good.js": b"good"}, ["entry-unsafe"])


def test_names_that_are_no_utf8_cost_themselves(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        archive.addfile(tarfile.TarInfo("p/\xe9"))
        archive.addfile(tarfile.TarInfo("p/good"))
    assert listing(tmp_path, buffer.getvalue()) == ({"good": b""}, {"\\udce9": "entry-unsafe"})


def test_links(tmp_path: Path) -> None:
    def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> TarEntry:
        return TarEntry(name=f"package/{name}", link=target, kind=kind)

    path = tmp_path / "package.tgz"
    path.write_bytes(
        tgz(
            [
                TarEntry(name="package/lib/a.js", data=b"1"),
                link("sym.js", "lib/a.js"),
                link("deep/sym.js", "../lib/a.js"),
                link("hard.js", "package/lib/a.js", tarfile.LNKTYPE),
                link("absolute", "/etc/passwd"),
                link("up", "../../etc"),
                link("beside", "../other/x"),
                link("back\\slash", "x"),
            ]
        )
    )
    with closing(TarballContainer(path)) as container:
        tree = Tree(container.entries)
        links = {entry.path: tree.follow(entry)[0] for entry in container.entries if entry.kind == "link"}
        assert links == {"sym.js": "lib/a.js", "deep/sym.js": "lib/a.js", "hard.js": "lib/a.js"}
        codes = {one.place: one.code for one in container.limitations}
        assert codes.keys() == {"absolute", "back\\slash", "up", "beside"}
        assert set(codes.values()) == {"entry-unsafe"}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    archive = tgz(
        [
            TarEntry(name="package/dir", kind=tarfile.SYMTYPE, link="/tmp"),
            TarEntry(name="package/inner", kind=tarfile.SYMTYPE, link="lib"),
            TarEntry(name="package/inner/x.js", data=b"bad"),
            TarEntry(name="package/file", data=b"file"),
            TarEntry(name="package/file/y.js", data=b"bad"),
        ]
    )
    found, limitations = listing(tmp_path, archive)
    assert found == {"inner": None, "file": b"file"}
    assert limitations["inner/x.js"] == limitations["file/y.js"] == "entry-unsafe"


@pytest.mark.parametrize(
    "kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE, b"Z"]
)
def test_devices_and_unknown_kinds_are_left_out_and_said(tmp_path: Path, kind: bytes) -> None:
    archive = tgz([TarEntry(name="package/odd", kind=kind), TarEntry(name="package/good", data=b"1")])
    found, limitations = listing(tmp_path, archive)
    assert found == {"good": b"1"}
    assert limitations == {"odd": "entry-skipped"}


def test_files_of_many_gzip_streams_and_padding(tmp_path: Path) -> None:
    plain = gzip.decompress(tgz_of({"a.js": b"1", "b.js": b"2" * 3000}))
    streams = b"".join(gzip.compress(plain[at : at + 700], mtime=0) for at in range(0, len(plain), 700))
    assert listing(tmp_path, streams + bytes(1000)) == ({"a.js": b"1", "b.js": b"2" * 3000}, {})


def test_an_empty_tarball(tmp_path: Path) -> None:
    assert listing(tmp_path, tgz([])) == ({}, {})


def raw(header: bytes) -> bytes:
    """A tarball of this one header block, whose checksum is put right."""
    block = bytearray(header.ljust(512, b"\0"))
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return gzip.compress(bytes(block) + bytes(1024), mtime=0)


def member(*, name: bytes = b"p/a", size: bytes = b"00000000000\0", kind: bytes = b"0") -> bytes:
    return raw(name.ljust(100, b"\0") + b"0000644\0" + bytes(16) + size + bytes(20) + kind)


@pytest.mark.parametrize(
    "archive",
    [
        b"",
        b"\x1f\x8b",
        b"not gzip",
        gzip.compress(b"not a tar, but long enough to fill a block" * 20, mtime=0),
        gzip.compress(b"short", mtime=0),
        member(size=b"00000100000\0"),
        member(size=b"9999999999 \0"),
        member(size=b"\xff" * 12),
        member(size=b"\x80" + b"\xff" * 11),
        member(kind=b"x", size=b"77777777777\0"),
        member(kind=b"L", size=b"00001000000\0"),
    ],
)
def test_what_does_not_hold_as_a_whole_is_refused(tmp_path: Path, archive: bytes) -> None:
    with pytest.raises(VerificationError) as caught:
        listing(tmp_path, archive)
    assert caught.value.code == "artifact-damaged"
    assert caught.value.details.keys() == {"offset"}


def test_every_truncation_and_every_flipped_byte_is_refused_or_read(tmp_path: Path) -> None:
    files: dict[str, bytes | None] = {"a.js": b"1" * 100, "b.js": b"2"}
    archive = tgz_of({"a.js": b"1" * 100, "b.js": b"2"})
    for at in range(len(archive)):
        with pytest.raises(VerificationError):
            listing(tmp_path, archive[:at])
        flipped = archive[:at] + bytes([archive[at] ^ 0xFF]) + archive[at + 1 :]
        with suppress(VerificationError):
            assert listing(tmp_path, flipped)[0] == files


def test_gzip_bombs_end_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_stream, "_MAX_TOTAL", 1 << 20)
    archive = tgz_of({"bomb.js": bytes(8 << 20)})
    assert len(archive) < 100_000
    with pytest.raises(VerificationError, match="unpacks to more than") as caught:
        listing(tmp_path, archive)
    assert "bound" in caught.value.hint


def test_bombs_of_names_end_at_the_bound(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="extended header"):
        listing(tmp_path, tgz([TarEntry(name="x" * (2 << 20))]))


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_stream, "MAX_ENTRIES", 3)
    with pytest.raises(VerificationError, match="more than 3 members"):
        listing(tmp_path, tgz_of(dict.fromkeys("abcd", b"")))


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: object, /) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarball.tempfile, "TemporaryFile", lambda **_: Full())  # type: ignore[misc]
    with pytest.raises(FailedError, match="No space left") as caught:
        listing(tmp_path, tgz_of({"a.js": b"1"}))
    assert (caught.value.code, caught.value.retryable) == ("store-full", True)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        TarballContainer(tmp_path / "none.tgz")


def test_tarballs_are_known_by_their_bytes(tmp_path: Path) -> None:
    archive = tgz_of({"a.js": b"1"})
    assert looks_like_tar(archive[:4096])
    assert reads(tmp_path / "download", archive[:4096])
    assert not looks_like_tar(gzip.compress(b"text", mtime=0))
    assert not looks_like_tar(b"\x1f\x8b broken")
    assert not looks_like_tar(zlib.compress(b"x"))


@given(st.binary(max_size=1500))
def test_no_bytes_crash(data: bytes) -> None:
    with suppress(VerificationError):
        for _ in TarStream(io.BytesIO(gzip.compress(data, mtime=0))):
            pass


@given(st.binary(min_size=345, max_size=600))
def test_no_header_crashes(data: bytes) -> None:
    with suppress(VerificationError):
        for found in TarStream(io.BytesIO(raw(data[:512]))):
            assert found.size >= 0
