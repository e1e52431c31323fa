"""What is kept beside memory comes back as it was."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.analyzers.javascript.parsing import spool as module
from affidavit.analyzers.javascript.parsing.spool import Spool
from affidavit.errors import FailedError


@given(st.lists(st.binary(max_size=40) | st.integers(0, 3000).map(bytes)), st.sampled_from([0, 50, 1 << 20]))
def test_everything_comes_back_in_any_order(texts: list[bytes], buffer: int) -> None:
    with pytest.MonkeyPatch.context() as patch, closing(Spool()) as spool:
        patch.setattr(module, "_BUFFER", buffer)
        places: list[int] = []
        for text in texts:
            places.append(spool.keep(text))
            assert spool.read(places[0]) == texts[0]
        assert [spool.read(place) for place in reversed(places)] == texts[::-1]
        assert len(set(places)) == len(places)


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> object:
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr(module.tempfile, "TemporaryFile", full)
    with closing(Spool()) as spool, pytest.raises(FailedError) as caught:
        spool.keep(bytes(2 << 20))
    assert caught.value.code == "store-full"
