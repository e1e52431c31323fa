"""`affidavit bundle export|import|show|merge|diff|sign|verify-signature`."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from affidavit.errors import UsageError
from affidavit.evidence.bundles.document import Bounds
from affidavit.evidence.bundles.merging import OpenBundle, diff, merge_bundles
from affidavit.evidence.files import open_input, read_input, write_output
from affidavit.evidence.record import JsonValue
from affidavit.evidence.verification import signing
from affidavit.evidence.verification.answer import envelope_of
from affidavit.interfaces.cli.output import Common, emit, harmless, lines, say
from affidavit.store import Store
from affidavit.store.exporting import Selection, export_bundle, import_bundle, importable

__all__ = ["compare", "export", "import_", "merge", "show", "sign", "verify_signature"]

_MB = 1 << 20
_ANY_SIZE = 1 << 62
_KEY_BYTES = 64 << 10
_SHOWN = 100  # answers that `show` shows in full

MaxMb = Annotated[int, Parameter(name="--max-mb")]


def export(
    output: Path,
    *,
    session: str | None = None,
    subject: str | None = None,
    operation: str | None = None,
    answer: Annotated[list[str] | None, Parameter(negative="")] = None,
    id: Annotated[list[str] | None, Parameter(negative="")] = None,  # noqa: A002
    zstd: Annotated[bool, Parameter(negative="")] = False,
    force: Annotated[bool, Parameter(negative="")] = False,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Write records, and everything that they rest on, to one file that anyone can check.

    Without a selection everything is exported. `--session`, `--subject` and `--operation` narrow each other; `--answer`
    and `--id` add to that, or stand alone.

    Args:
        output: File to write; only its owner may read it.
        session: Only records that this session is about.
        subject: Only records about this artifact, sha256:...
        operation: Only records of this operation, for example javascript.modules.page/1.
        answer: An answer, by id or unique prefix; repeatable.
        id: A record, by id or unique prefix; repeatable.
        zstd: Pack the file (needs affidavit[zstd]).
        force: Replace a file that is there.
    """
    selection = Selection(
        session=session,
        subject=subject,
        operation=operation,
        answers=tuple(answer or ()),
        ids=tuple(id or ()),
    )
    with Store.open(common.workspace, tenant=common.tenant, create=False, to_read=True) as store:
        done = write_output(
            output, lambda write: export_bundle(store, write, selection), force=force, zstd=zstd
        )
    if common.json:
        emit({"file": str(output), **done.as_json()})
    else:
        sys.stdout.write(f"{output}: {done.records} records, {done.answers} answers, {done.blobs} blobs\n")
        sys.stdout.write(f"digest {done.whole}\n")
        if done.missing:
            say(f"note: {done.missing} records that others rest on are not in this workspace")
        for script in done.scripts_missing:
            say(f"note: the script {script} is not in this workspace")
    return 0


def import_(
    file: Path,
    *,
    max_mb: MaxMb = 1024,
    max_records: int = 1_000_000,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Check a bundle and add all of it to the workspace, or nothing; doing it again changes nothing.

    Args:
        file: The bundle.
        max_mb: Largest size, unpacked.
        max_records: Most records.
    """
    bounds = Bounds(file_bytes=max_mb * _MB, records=max_records)
    with open_input(file, bounds.file_bytes) as opened:
        checked = importable(opened, bounds)  # refuses before a workspace is made
        with Store.open(common.workspace, tenant=common.tenant) as store:
            done = import_bundle(store, opened, checked=checked)
    if common.json:
        emit({"file": str(file), **done.as_json()})
    else:
        present = done.records - done.added
        sys.stdout.write(f"{done.added} records added, {present} were here, {done.blobs} blobs\n")
        sys.stdout.write(f"session {done.session}\n")
    return 0


def show(file: Path, *, max_mb: MaxMb = 1024, common: Common = Common()) -> int:  # noqa: B008
    """Say what is in a bundle: counts, operations, subjects, answers. It is checked on the way.

    Args:
        file: The bundle.
        max_mb: Largest size, unpacked.
    """
    with _opened([file], max_mb) as (bundle,):
        contents = bundle.contents
        document: dict[str, Any] = {
            "file": str(file),
            "whole": contents.whole,
            "records": len(contents.records),
            "blobs": len(contents.blobs),
            "unknown_revisions": contents.revisions,
            "missing": contents.missing,
            "operations": dict(sorted(contents.operations.items())),
            "subjects": dict(sorted(contents.subjects.items())),
            "answers": [_answer(bundle, name) for name in contents.answers[:_SHOWN]],
            "more_answers": max(0, len(contents.answers) - _SHOWN),
        }
    if common.json:
        emit(document)
        return 0
    counts = ("records", "blobs", "unknown_revisions")
    sys.stdout.write(", ".join(f"{document[name]} {name.replace('_', ' ')}" for name in counts) + "\n")
    for title in ("operations", "subjects"):
        rows = [{title: name, "records": count} for name, count in document[title].items()]
        sys.stdout.write(f"\n{lines(rows, [title, 'records'])}\n" if rows else "")
    for answer in document["answers"]:
        sys.stdout.write(
            f"\nanswer {answer['evidence_id']}: {answer['status']}\n  {harmless(answer['derivation'])}\n"
        )
    sys.stdout.write(f"\ndigest {document['whole']}\n")
    return 0


def merge(
    files: list[Path],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    zstd: Annotated[bool, Parameter(negative="")] = False,
    force: Annotated[bool, Parameter(negative="")] = False,
    max_mb: MaxMb = 1024,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Write the union of bundles; in whatever order they are given, the file is the same.

    Args:
        files: The bundles.
        output: File to write.
        zstd: Pack the file (needs affidavit[zstd]).
        force: Replace a file that is there.
        max_mb: Largest size of each, unpacked.
    """
    with _opened(files, max_mb) as bundles:
        whole = write_output(output, lambda write: merge_bundles(bundles, write), force=force, zstd=zstd)
    with _opened([output], max_mb * len(files)) as (made,):
        count = len(made.contents.records)
    if common.json:
        emit({"file": str(output), "whole": whole, "records": count})
    else:
        sys.stdout.write(f"{output}: {count} records\ndigest {whole}\n")
    return 0


def compare(
    first: Path,
    second: Path,
    *,
    max_mb: MaxMb = 1024,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Say which records, revisions and blobs only one of two bundles has.

    Args:
        first: A bundle.
        second: Another one.
        max_mb: Largest size of each, unpacked.
    """
    with _opened([first, second], max_mb) as (one, other):
        found = diff(one, other).as_json()
    if common.json:
        emit(found)
        return 0
    for title in ("records", "unknown_revisions", "blobs"):
        part = found[title]
        sys.stdout.write("".join(f"- {name}\n" for name in part["only_first"]))
        sys.stdout.write("".join(f"+ {name}\n" for name in part["only_second"]))
    sys.stdout.write(f"{found['records']['common']} records in both\n")
    return 0


def sign(
    file: Path,
    *,
    key: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    force: Annotated[bool, Parameter(negative="")] = False,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Sign a file with an Ed25519 key, into a file beside it (needs affidavit[sign]).

    Args:
        file: A bundle, or any other file.
        key: The private key in PEM, without a password.
        output: File to write; by default the name with .sig behind it.
        force: Replace a file that is there.
    """
    target = output or file.with_name(file.name + ".sig")
    pem = read_input(key, _KEY_BYTES)
    with open_input(file, _ANY_SIZE, unpack=False) as opened:  # what is signed are the bytes as they stand
        signature = signing.sign(opened, pem)
    write_output(target, lambda write: write(signature), force=force)
    if common.json:
        emit({"file": str(file), "signature": str(target)})
    else:
        sys.stdout.write(f"{target}\n")
    return 0


def verify_signature(
    file: Path,
    *,
    key: Path,
    signature: Path | None = None,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Check that the holder of a key signed exactly this file; exits with 4 when not (needs affidavit[sign]).

    Args:
        file: The file.
        key: The public key that you trust, in PEM.
        signature: Its signature; by default the name with .sig behind it.
    """
    pem = read_input(key, _KEY_BYTES)
    made = read_input(signature or file.with_name(file.name + ".sig"), _KEY_BYTES)
    with open_input(file, _ANY_SIZE, unpack=False) as opened:  # what is signed are the bytes as they stand
        fields = signing.check_signature(opened, made, pem)
    if common.json:
        emit({"holds": True, **fields})
    else:
        sys.stdout.write(f"signed by the holder of {key}: {fields['file']}\n")
    return 0


@contextmanager
def _opened(files: Sequence[Path], max_mb: int) -> Generator[list[OpenBundle]]:
    if not files:
        raise UsageError("usage", "no bundle is named", hint="name one file or more")
    bounds = Bounds(file_bytes=max_mb * _MB)
    with ExitStack() as stack:
        yield [
            OpenBundle.read(str(path), stack.enter_context(open_input(path, bounds.file_bytes)), bounds)
            for path in files
        ]


def _answer(bundle: OpenBundle, name: str) -> JsonValue:
    return envelope_of(name, bundle.lookup.get(name), bundle.lookup)
