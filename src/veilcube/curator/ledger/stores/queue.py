"""The queue of those who want to write to one ledger: a lock that the system gives in the order in which it was asked.

SQLite's own lock has no queue: whoever asks at the right moment gets it. This one stands in front of it, on the file
with the ledger's key, and goes with the process that holds it, however that ends. Programs that know nothing of it, and
disks that have no such locks, are kept apart by SQLite's lock all the same.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class NoTurnError(Exception):
    """The time was up before it was one's turn."""


@contextmanager
def turn(path: Path, deadline: float) -> Iterator[None]:
    """Wait for one's turn, until a moment of the monotonic clock, and keep everybody behind waiting meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a ledger that is just begun has no key yet, and whoever cannot read it cannot charge
        yield
        return
    waiter = _Waiter(descriptor)
    try:
        if not waiter.wait(deadline):
            raise NoTurnError
        yield
    finally:
        waiter.leave()


class _Waiter:
    """Waits for the lock in a thread of its own, since a lock cannot be waited for with a time limit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._changing, self._got = threading.Lock(), threading.Event()
        self._left = self._is_waiting = False

    def wait(self, deadline: float) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            self._is_waiting = True
            threading.Thread(target=self._wait, daemon=True, name="veilcube-ledger-queue").start()
            return self._got.wait(max(0.0, deadline - time.monotonic()))
        except OSError:  # no such locks here
            return True
        return True

    def leave(self) -> None:
        """Give the lock back, or the place in the queue, once it comes up."""
        with self._changing:
            self._left = True
            if self._is_waiting and not self._got.is_set():
                return
        self._close()

    def _wait(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._changing:
            self._got.set()
            if not self._left:
                return
        self._close()

    def _close(self) -> None:
        # Unlocked by its name too: a child that was forked meanwhile shares the descriptor.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
