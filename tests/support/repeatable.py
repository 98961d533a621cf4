"""Noise that is the same in every run of a test, so that no test fails by luck.

What is exchanged is where keys come from, nothing else: AES in counter mode, samplers and mechanisms are the product's.
Each test, fixture of a module and import of a module has keys of its own, so that order and selection change nothing.
Large vectors are drawn by several threads, which take their keys in any order.
"""

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

SEED_VARIABLE = "VEILCUBE_TEST_SEED"


class RepeatableKeys:
    """Stands in for ``os`` where random words are made; children of the test process have the system's entropy."""

    def __init__(self, seed: str) -> None:
        self._seed, self._process, self._lock = seed, os.getpid(), threading.Lock()
        self._context: str | None = ""
        self._taken: Counter[str] = Counter()

    @contextmanager
    def during(self, context: str | None) -> Iterator[None]:
        """Take keys from a tape of its own; None for the system's entropy."""
        before, self._context = self._context, context
        if context is not None:
            self._taken[context] = 0
        try:
            yield
        finally:
            self._context = before

    def urandom(self, size: int) -> bytes:
        """Return the next key of the present tape."""
        context = self._context
        if context is None or os.getpid() != self._process:
            return os.urandom(size)
        with self._lock:
            self._taken[context] += 1
            number = self._taken[context]
        return hashlib.shake_256(f"{self._seed}\0{context}\0{number}".encode()).digest(size)
