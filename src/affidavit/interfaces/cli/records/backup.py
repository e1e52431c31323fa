"""`affidavit backup`."""

from __future__ import annotations

import sys
from pathlib import Path

from affidavit.interfaces.cli.output import Common, emit, say
from affidavit.store import Store
from affidavit.store.exporting.backup import back_up

__all__ = ["backup"]

_DOES_NOT_HOLD = 4


def backup(folder: Path, *, common: Common = Common()) -> int:  # noqa: B008
    """Copy the whole workspace into a new folder while it is in use; the copy is a workspace itself.

    Exits with 4 when a blob is damaged: everything else is copied.

    Args:
        folder: The new folder.
    """
    with Store.open(common.workspace, tenant=common.tenant, create=False, to_read=True) as store:
        done = back_up(store, folder)
    if common.json:
        emit(done.as_json())
    else:
        sys.stdout.write(
            f"{folder}: {done.blobs} blobs, {done.facts} fact files, and every record and event\n"
        )
    for address in done.damaged:
        say(f"damaged here and not copied: {address}")
    return _DOES_NOT_HOLD if done.damaged else 0
