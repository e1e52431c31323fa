"""Writing the journal of one session: every event as a line, in the log's order, before `Store.append` returns.

The log is the truth and the journal follows it. Whoever holds the journal's lock writes the events that are in the log
and not yet in the journal, up to its own; so an event whose writer died between the two is caught up by the next
writer, a journal that is turned on late holds the whole session, and several processes write one unforked chain.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from affidavit.errors import AffidavitError, FailedError
from affidavit.evidence.identity import Sealed, seal
from affidavit.evidence.record import JsonValue
from affidavit.store.events import StoredEvent, prepare
from affidavit.store.journal._notices import damaged, told, why_unreadable
from affidavit.store.journal._part import Part, claim, failed, failing
from affidavit.store.journal._portable import portable
from affidavit.store.journal._sync import Syncer
from affidavit.store.journal._tail import Tail
from affidavit.store.journal.lines import (
    FORMAT,
    VERSION,
    blob_length,
    blob_payloads,
    check_version,
    event_payload,
    make,
    payload,
    read_line,
    record_payload,
    refuse_newer,
    tells,
)
from affidavit.store.journal.settings import JournalSettings
from affidavit.store.store import Appended

if TYPE_CHECKING:
    from affidavit.store.store import Store

__all__ = ["Journal"]

RESERVE: Final = 4096
"""Bytes below the bound that are kept free for the line that says that it was reached."""

_IDS: Final = re.compile(rb"ev1_[0-9a-f]{64}")
_BLOBS: Final = re.compile(rb'\{"digest":"(sha256:[0-9a-f]{64})","size":[0-9]+\}')
_SIZE: Final = b'","size":'
_ID_START: Final = b"ev1_"
_MAX_SUBJECTS: Final = 20
_CATCH_UP: Final = 500  # events read from the log at a time


class Journal:
    """The journal of one session. Safe for several threads; several processes may have it open.

    Attributes:
        session: id of the session.
        settings: where it goes and what it promises.
    """

    def __init__(
        self, store: Store, session: str, settings: JournalSettings, about: Mapping[str, JsonValue], name: str
    ) -> None:
        self.session = session
        self.settings = settings
        self._store = store
        self._about = about
        self._name = name
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._tail = Tail()
        self._seq = 0  # of the last event of the log that is in the journal
        self._counted = 0  # how many events were in the journal up to that one
        self._begun = False
        self._losses: list[dict[str, JsonValue]] = []  # that are still to be told
        self._torn = 0  # bytes of torn lines that were cut off
        self._part = Part.open(settings.folder, name, 1)
        self._syncer = Syncer(settings, self._part.handle)

    @classmethod
    def open(
        cls,
        store: Store,
        session: str,
        settings: JournalSettings,
        *,
        product: str = "",
        subjects: Sequence[Mapping[str, JsonValue]] = (),
    ) -> Journal:
        """Open the journal of a session, making it or going on with the one that is there, and bring it up to date.

        Args:
            store: the workspace's store, whose log it follows.
            session: id of the session.
            settings: where it goes and what it promises.
            product: version of the product, for the head.
            subjects: what is examined, as far as known: each with its `digest`; the first names the file.

        Raises:
            FailedError: `journal-failed`: it cannot be written; `journal-mismatch`: it is of another log, or ahead of
                this one; `journal-version`: it was written by a newer version; `store-busy`.
            VerificationError: `journal-damaged`: it cannot be gone on with.
        """
        about: dict[str, JsonValue] = {
            "fsync": settings.fsync,
            "product": product,
            "session": session,
            "subjects": [dict(it) for it in subjects[:_MAX_SUBJECTS]],
        }
        first = str(subjects[0]["digest"]) if subjects else None
        with failing(settings.folder):
            name = claim(settings.folder, session, first)
            journal = cls(store, session, settings, about, name)
        try:
            journal._begin()
        except BaseException:
            journal._part.close()
            raise
        return journal

    @property
    def truncated(self) -> bool:
        """Whether the bound was reached: later events are in the workspace only."""
        return self._tail.truncated

    def notices(self) -> list[str]:
        """What a person should be told of it: that it was torn, does not hold, or takes no more."""
        bound = self.settings.max_bytes if self._tail.truncated else 0
        return told(self.path, self.session, torn=self._torn, flaws=self._tail.flaws, bound=bound)

    @property
    def path(self) -> Path:
        """The part that is written."""
        return self._part.path

    def write(self, entries: Sequence[Appended]) -> None:
        """Write events that were just added to the log, in order. `settle` makes them as durable as was promised.

        Raises:
            FailedError: `journal-failed`: the events are in the log and not, or not surely, in the journal. Nothing
                may go on as if they were. A later write catches up.
            VerificationError: `journal-damaged`.
        """
        problem: BaseException | None = None
        self._enter()  # as `_writing` does, whose steps would cost every event a tenth of its line
        try:
            for stored, data, sealed, previous in entries:
                if stored.seq <= self._seq:
                    continue  # another writer caught up
                if stored.repeated or previous != self._seq:
                    self._catch_up(stored.seq)
                else:
                    self._put(stored, data, sealed)
        except BaseException as error:
            problem = error
            raise
        finally:
            self._leave(problem)

    @property
    def waits(self) -> bool:
        """Whether `settle` waits for the disk."""
        return self.settings.fsync == "always"

    def settle(self) -> None:
        """Under `always`, return when all that was written is on the disk. One of those that wait syncs for all.

        Raises:
            FailedError: `journal-failed`.
        """
        if self.waits:
            with failing(self.path):
                self._syncer.settle()

    def close(self) -> None:
        """Write the closing line and release the files. Repeating it is harmless.

        Raises:
            FailedError: `journal-failed`: what was written may not have reached the disk.
        """
        if self._closed:
            return
        if os.getpid() == self._process:
            try:
                with self._writing():
                    self._bring_up_to_date()  # "closed" says that nothing is missing
                    self._line(payload({"closed": {"count": self._tail.count}}))
            except AffidavitError:
                pass  # without that line it says "not closed", which is what it is
        with self._lock:
            self._closed = True
            try:
                with failing(self.path):
                    self._syncer.close()
            finally:
                self._part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- opening and following ----

    def _begin(self) -> None:
        """Read what is there, see that it is this log's, and write what is missing."""
        with self._writing():
            self._seq = self._match()
            self._begun, self._counted = True, self._tail.count
            self._put_opened()
            self._bring_up_to_date()
        self.settle()

    def _bring_up_to_date(self) -> None:
        last = self._store.events.last(self.session)
        if last is not None and last.seq > self._seq:
            self._catch_up(last.seq)

    def _match(self) -> int:
        """The `seq` in this log of the last event in the journal, when it is the journal of this log."""
        count = self._tail.count
        if count == 0:
            return 0
        places = {1: self._tail.first_event, count: self._tail.last_event}
        seq = 0
        for place, raw in places.items():
            [*_, found] = [None, *self._store.events.of_session(self.session, skip=place - 1, limit=1)]
            if found is None:
                raise self._ahead()
            seq = found.seq
            line = read_line(raw)
            if line is not None and not tells(line, found):
                raise FailedError(
                    "journal-mismatch",
                    f"the journal {self.path} is of another session that is called {self.session}, too",
                    hint="choose another folder for the journal, or another session",
                    details={"path": str(self.path), "event": place},
                )
        return seq

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Hold the locks, knowing all that is in the journal."""
        self._enter()
        problem: BaseException | None = None
        try:
            yield
        except BaseException as error:
            problem = error
            raise
        finally:
            self._leave(problem)

    def _enter(self) -> None:
        """Take the locks of threads and processes, and learn what others wrote."""
        self._lock.acquire()
        try:
            self._acquire()
        except BaseException as error:
            self._leave(error)
            raise

    def _leave(self, error: BaseException | None) -> None:
        """Let the next writer in. What the system reported meanwhile becomes the product's error."""
        try:
            if not self._closed:
                self._part.release()
        finally:
            self._lock.release()
        if isinstance(error, OSError):
            raise failed(self.path, error) from None

    def _acquire(self) -> None:
        """With the threads' lock held: take that of the processes, on the last part, knowing all that is in it."""
        if self._closed:
            raise FailedError("internal", f"the journal {self.path} is closed", hint="open the session again")
        self._part.acquire()
        self._syncer.check()
        size = self._part.size()
        if size != self._tail.end or not size or self._losses or self._tail.continued:
            self._look(size)
        if self._begun and self._counted != self._tail.count:
            self._place()

    def _look(self, size: int) -> None:
        """Learn what stands in this part and in those that follow it, and tell what was lost."""
        self._learn(size)
        while self._tail.continued:
            self._take(Part.open(self.settings.folder, self._name, self._part.number + 1, create=True))
            self._learn(self._part.size())
        while self._losses and self._line(payload({"loss": self._losses[0]})):
            del self._losses[0]

    def _learn(self, size: int) -> None:
        """Read what another writer added; cut off what a killed one left; write the head of an empty part."""
        tail, part = self._tail, self._part
        if size == tail.end and size:
            return
        if size < tail.end:
            raise damaged(part.path, "became shorter while it was written", size)
        beginning = b'{"n":%d,"prev":"%b","journal":' % (tail.n, tail.prev.encode())
        tail.read(part.handle, size)
        if tail.head:
            self._check_head(tail.head)
        if tail.empty and (tail.end or not part.begins_like(beginning)):
            raise damaged(part.path, why_unreadable(tail.head), 0)
        if tail.continued:
            return  # nothing is written here any more
        if tail.left:
            self._torn += tail.left
            self._losses.append(part.cut(tail.end, tail.left) | {"part": part.number})
            tail.left = 0
        elif tail.damaged is not None:
            place, length = tail.damaged
            self._losses.append({"cut": False, "length": length, "part": part.number, "place": place})
            tail.damaged = None
        if tail.end == 0:
            self._put_head()

    def _place(self) -> None:
        """Find the place in the log of the last event in the journal, when others wrote events of their own."""
        skip = self._tail.count - self._counted - 1
        found = self._store.events.of_session(self.session, self._seq, skip=skip, limit=1)
        if not found:
            raise self._ahead()
        self._seq, self._counted = found[0].seq, self._tail.count

    def _ahead(self) -> FailedError:
        count = self._tail.count
        return FailedError(
            "journal-mismatch",
            f"the journal {self.path} has {count} events of session {self.session}, more than the workspace",
            hint="`affidavit journal restore` it into the workspace first, or choose another folder",
            details={"path": str(self.path), "events": count},
        )

    def _check_head(self, raw: bytes) -> None:
        """See that a part is of this session and of a version that is known."""
        line = read_line(raw)
        if line is None:
            refuse_newer(raw, str(self.path))
        about = line.content.get("journal") if line else None
        if about is None:
            return  # some other line came first, or a damaged one: verification tells
        check_version(about, str(self.path))
        if about["session"] != self.session:
            raise FailedError(
                "journal-mismatch",
                f"the journal {self.path} is of session {about['session']!a}",
                hint="choose another folder for the journal",
                details={"path": str(self.path)},
            )

    def _take(self, following: Part) -> None:
        """Go on with the part after this one, whose lock is taken before this one's goes."""
        try:
            following.acquire()
            self._syncer.move(following.handle)
        except BaseException:
            following.close()
            raise
        self._part.release()
        self._part.close()
        self._part = following
        self._tail.begin_part()

    # ---- writing, with the locks held ----

    def _catch_up(self, upto: int) -> None:
        """Write the events of the log that are missing, up to a `seq`."""
        while self._seq < upto:
            events = self._store.events.of_session(self.session, self._seq, limit=_CATCH_UP)
            for event in events:
                if event.seq > upto:
                    return
                self._put(event, prepare(event), None)
            if not events:
                return

    def _put(self, event: StoredEvent, data: bytes, sealed: Sealed | None) -> None:
        """Write one event, and before it what it refers to and the journal does not have yet."""
        tail = self._tail
        if not tail.truncated:
            evidence_id = event.evidence_id
            data = portable(event.kind, data)
            if evidence_id is None or evidence_id in tail.known:
                sealed = None
            elif sealed is None:
                sealed = seal(self._store.evidence.get(evidence_id))
            self._put_references(data, evidence_id)
            if sealed is not None:
                self._put_references(sealed.body, evidence_id)
            if self._line(event_payload(event, data, tail.count + 1, evidence_id, sealed)):
                tail.count += 1
                self._counted += 1
                if sealed is not None:
                    tail.known.add(sealed.id)
        self._seq = event.seq

    def _put_references(self, body: bytes, own: str | None) -> None:
        """Write the blobs and records that these bytes refer to, each after those that it refers to itself."""
        # Two searches for bytes tell that most bodies refer to nothing, in a third of the time of the expressions; and
        # backwards in half the time of forwards.
        if body.rfind(_SIZE) >= 0:
            self._put_blobs(body)
        if body.rfind(_ID_START) < 0:
            return
        pending: list[Sealed | str] = list(self._missing(body, own))
        while pending and not self._tail.truncated:
            item = pending.pop()
            if isinstance(item, str):
                if item not in self._tail.known:
                    record = seal(self._store.evidence.get(item))
                    pending.append(record)
                    pending += self._missing(record.body, item)
            elif item.id not in self._tail.known:
                self._put_blobs(item.body)
                if self._line(record_payload(item)):
                    self._tail.known.add(item.id)

    def _missing(self, body: bytes, own: str | None) -> set[str]:
        """Ids of records that the bytes name, that the workspace has and the journal does not."""
        named = {it.decode() for it in _IDS.findall(body)} - self._tail.known - {own}
        return self._store.evidence.has(named) if named else set()

    def _put_blobs(self, body: bytes) -> None:
        for digest in sorted({it.decode() for it in _BLOBS.findall(body)} - self._tail.known):
            if not self._store.blobs.has(digest):
                continue  # data that looks like a reference
            data = self._store.blobs.get(digest)
            if self._has_room(blob_length(len(data))):
                for content in blob_payloads(digest, data):
                    self._line(content)
                self._tail.known.add(digest)

    def _put_head(self) -> None:
        """The first line of a part."""
        about = dict(self._about) | {"format": FORMAT, "part": self._part.number, "version": VERSION}
        self._append(payload({"journal": about}))

    def _put_opened(self) -> None:
        """Say when a writer goes on with another policy or version than the head has."""
        line = read_line(self._tail.head)
        own = {key: self._about[key] for key in ("fsync", "product")}
        about: dict[str, JsonValue] = line.content.get("journal", {}) if line else {}
        if own != {key: about.get(key) for key in own}:
            self._line(payload({"opened": own}))

    def _line(self, content: bytes) -> bool:
        """Write one line, in a further part or as the line of truncation where the bounds say so."""
        tail, settings = self._tail, self.settings
        end = tail.end + len(content)
        if (
            end <= settings.part_bytes
            and end + tail.before + RESERVE <= settings.max_bytes
            and not tail.truncated
        ):
            self._append(content)  # as nearly always
            return True
        if not self._has_room(len(content)):
            return False
        if end > settings.part_bytes and not tail.empty:
            self._append(payload({"continued": {"part": self._part.number + 1}}))
            self._tail.continued = True
            self._take(Part.open(self.settings.folder, self._name, self._part.number + 1, create=True))
            self._put_head()
        self._append(content)
        return True

    def _has_room(self, length: int) -> bool:
        """Whether so many bytes fit below the bound; where not, the line that says so is written."""
        tail = self._tail
        if tail.truncated:
            return False
        if tail.before + tail.end + length + RESERVE <= self.settings.max_bytes:
            return True
        self._append(payload({"truncated": {"bound": self.settings.max_bytes, "count": tail.count}}))
        tail.truncated = True
        return False

    def _append(self, content: bytes) -> None:
        tail = self._tail
        line, mark = make(tail.n, tail.prev, content)
        self._part.append(tail.end, line)
        if tail.end == 0:
            tail.head = line[:-1]
        tail.n += 1
        tail.prev = mark
        tail.end += len(line)
        tail.empty = False
        self._syncer.wrote(len(line))
