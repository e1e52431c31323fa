"""Whose turn it is: a session's requests are served one at a time, in the order in which its log has them.

Any number of tasks and processes may ask at once. Whoever runs a script holds the session's lock, which the kernel
releases when a process dies; whoever waits holds a lock of its own, which tells the others that it lives. A request
that is neither settled nor alive is lost, and the next in line settles it as orphaned.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from filelock import FileLock, Timeout

from affidavit.errors import FailedError, UsageError
from affidavit.evidence.canonical import canonical
from affidavit.evidence.record import JsonValue
from affidavit.runtime.recovery import open_runs, orphan
from affidavit.runtime.run import Request, settlement
from affidavit.store import Event, Store, StoredEvent
from affidavit.store.event_kinds import fault, sound
from affidavit.store.events import Head

__all__ = ["Turn", "Turns"]

_FIRST_LOOK: Final = 0.005
_LATER_LOOKS: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A request's place in the log. A `repeated` one was made before under its key, and is not served again."""

    run_id: str
    number: int
    repeated: bool = False


class Turns:
    """Hands out the turns of one session.

    Args:
        store: where the session's log is.
        session: its id.
        folder: where lock files are.
        now: the time, seconds since the epoch.
    """

    def __init__(self, store: Store, session: str, *, folder: Path, now: Callable[[], float]) -> None:
        self._store = store
        self._session = session
        self._folder = folder
        self._now = now
        # Made once: making one costs as much as taking it. Held by one task at a time, whatever the thread.
        self._lock = FileLock(folder / f"{_digest(session)}.lock", thread_local=False)
        # The number of the last turn that was had here, and the settlement that ended the log then. While it still
        # does, nobody waits and nothing is lost: one look of 10 us instead of five.
        self._left: tuple[int, Head] | None = None

    @asynccontextmanager
    async def take(
        self, run_id: str, request: Request, *, key: str | None = None, wait_seconds: float | None = None
    ) -> AsyncGenerator[Turn]:
        """Enter the request into the log and wait until all before it are settled.

        Args:
            run_id: id for the run, new.
            request: what is asked.
            key: idempotency key: a second request with it is the first one again.
            wait_seconds: how long to wait at most; as long as it takes by default.

        Raises:
            FailedError: `session-busy`, when it did not come to its turn in time.
            UsageError: `key-reused`, when the key belongs to another request.
        """
        alive: FileLock | None = None
        number: int | None = None
        held = self._acquired(self._lock)
        try:
            if held:
                number = self._undisturbed()
                if number is None and self._waiting():
                    self._lock.release()
                    held = False
            if not held:
                alive = self._own(run_id)
                alive.acquire(timeout=0)
            turn = self._requested(run_id, request, key, number)
            if not held and not turn.repeated:
                await self._come_up(turn, wait_seconds)
                held = True
            elif held and turn.repeated:
                self._lock.release()
                held = False
            yield turn
            if held:
                self._leave_undisturbed(turn)
        finally:
            if held:
                self._lock.release()
            if alive is not None:
                self._leave(alive)

    async def settled(self, run_id: str) -> None:
        """Wait until a run is settled, and settle it as orphaned when its process is gone."""
        pause = _FIRST_LOOK
        while self._store.events.last(self._session, run=run_id, kind="run-settled") is None:
            self.recover()
            if self._store.events.last(self._session, run=run_id, kind="run-settled") is not None:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LATER_LOOKS)

    def recover(self) -> list[str]:
        """Settle every run that is lost; their ids. Nothing is run again, and nothing is done while a script runs."""
        if not self._acquired(self._lock):
            return []
        try:
            before = [view.run_id for view in open_runs(self._store, self._session)]
            waiting = set(self._waiting()) if before else set[str]()
            return [run_id for run_id in before if run_id not in waiting]
        finally:
            self._lock.release()

    def _waiting(self, until: int | None = None) -> list[str]:
        """With the session's lock held: settle what is lost, and tell who waits, of those before run `until`."""
        waiting: list[str] = []
        for view in open_runs(self._store, self._session):
            if until is not None and view.number >= until:
                break
            if self._lives(view.run_id):
                waiting.append(view.run_id)
            else:
                orphan(self._store, self._session, view, self._now)
        return waiting

    async def _come_up(self, turn: Turn, seconds: float | None) -> None:
        """Wait for the session's lock with nobody before us."""
        end = None if seconds is None else time.monotonic() + seconds
        pause = _FIRST_LOOK
        try:
            while True:
                if self._acquired(self._lock):
                    if not self._waiting(turn.number):
                        return
                    self._lock.release()
                if end is not None and time.monotonic() >= end:
                    raise self._busy()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LATER_LOOKS)
        except BaseException:
            unserved: dict[str, JsonValue] = {
                "number": turn.number,
                "status": "cancelled",
                "has_value": False,
            }
            self._store.append(settlement(self._session, turn.run_id, unserved, self._now()))
            raise

    def _undisturbed(self) -> int | None:
        """The next number, if nothing happened in the session since the last turn here."""
        if self._left is None or self._store.events.head(self._session) != self._left[1]:
            return None
        return self._left[0] + 1

    def _leave_undisturbed(self, turn: Turn) -> None:
        """Remember how the log ends, if this run's settlement ends it and nobody asked for a turn meanwhile."""
        head = self._store.events.head(self._session)
        asked = self._store.events.head(self._session, kind="run-requested")
        ours = head is not None and (head.kind, head.run) == ("run-settled", turn.run_id)
        alone = asked is not None and asked.run == turn.run_id
        self._left = (turn.number, head) if head is not None and ours and alone else None

    def _requested(self, run_id: str, request: Request, key: str | None, number: int | None) -> Turn:
        """Append the request under the next free number, or find the one that was made with this key."""
        named = None if key is None else f"request:{_digest(key)}"
        number = number or self._next_number()
        while True:
            asked = request.as_event(number)
            events = [self._event("run-requested", run_id, asked, f"run:{number}")]
            if named is not None:
                events.append(self._event("request-keyed", run_id, {"number": number}, named))
            taken = self._store.append_new(events)
            if taken is None:
                return Turn(run_id=run_id, number=number)
            if taken.key == named:
                return self._repeated(taken, request)
            number = max(number, self._next_number() - 1) + 1

    def _repeated(self, keyed: StoredEvent, request: Request) -> Turn:
        """The turn of an earlier request with the same key, if it is the same request."""
        run_id, number = keyed.run or "", int(cast("dict[str, Any]", keyed.data)["number"])
        first = self._store.events.by_key(self._session, f"run:{number}")
        if first is None or canonical(first.data) != canonical(request.as_event(number)):
            raise UsageError(
                "key-reused",
                f"the idempotency key of run {number} was given with another request",
                hint="a new request needs a new key",
                details={"run_id": run_id},
            )
        return Turn(run_id=run_id, number=number, repeated=True)

    def _next_number(self) -> int:
        last = self._store.events.last(self._session, kind="run-requested")
        if last is not None and fault(last):
            [*_, last] = [None, *sound(self._store.events.of_kinds(self._session, ("run-requested",)))]
        return 1 if last is None else int(cast("dict[str, Any]", last.data)["number"]) + 1

    def _event(self, kind: str, run: str, data: dict[str, JsonValue], key: str) -> Event:
        return Event(kind=kind, session=self._session, run=run, at=self._now(), data=data, key=key)

    def _own(self, run_id: str) -> FileLock:
        """The lock that tells others that a waiting request lives."""
        return FileLock(self._folder / f"{run_id}.lock", thread_local=False)

    def _acquired(self, lock: FileLock) -> bool:
        if lock.is_locked:  # by another task of this session: the lock itself would let us in
            return False
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def _lives(self, run_id: str) -> bool:
        """Whether a waiting request's process holds its lock."""
        lock = self._own(run_id)
        if not Path(lock.lock_file).exists() or not self._acquired(lock):
            return Path(lock.lock_file).exists()
        self._leave(lock)
        return False

    def _leave(self, lock: FileLock) -> None:
        """Take the lock file away while it is held, so that nobody waits for what is gone."""
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()

    def _busy(self) -> FailedError:
        return FailedError(
            "session-busy",
            f"session {self._session} is running another script",
            hint="wait longer, or use another session",
            retryable=True,
        )


def _digest(text: str) -> str:
    """A name of bounded length and plain characters for any text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
