"""Mutates known inputs and feeds them to readers, under limits of time and memory, and keeps what breaks them."""

import json
import random
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from veilcube.errors import VeilcubeError

CORPUS = Path(__file__).parent / "corpus"
SLOWEST, LARGEST = 2.0, 2**30
LONGEST_MESSAGE = 1_000
# What readers of texts treat in a way of their own.
WORDS = (
    b"[[attribute]]\n", b"name = ", b"low", b"high", b"values", b"hierarchy", b"edges", b"nan", b"inf", b"-0", b"1e999",
    b"9" * 40, b"0x", b"''", b'"""', b"'''", b"\\u0000", b"\x00", b"\xff", b"\xed\xa0\x80", "é".encode(), b"()" * 40,
    b"(" * 300, b"[" * 300, b"{" * 300, b"NOT " * 200, b" AND ", b" OR ",
    b"BETWEEN", b" IN (", b"CASE WHEN ", b"/*", b"--",
    b"SELECT COUNT(*) FROM t WHERE ",
    b"total", b" <= ", b" = ", b"*", b"/0", b"%", b"\r\n", b"\t", b",", b";", b"null",
    b"true", b"[]", b"{}", b"[[impossible]]\n", b"2024-02-30", b"-1", b"1_000", b"PK\x03\x04", b"\x1f\x8b",
)  # fmt: skip


class TooSlowError(Exception):
    """A reader took longer than it may."""


@dataclass(frozen=True)
class Target:
    """A reader, and the inputs that mutation starts from; ``read`` raises nothing but refusals of ours."""

    name: str
    read: Callable[[bytes], object]
    seeds: Sequence[bytes]

    @property
    def corpus(self) -> list[bytes]:
        """The seeds, and what was kept because it once broke something."""
        kept = sorted((CORPUS / self.name).glob("*")) if (CORPUS / self.name).is_dir() else []
        return [*self.seeds, *(path.read_bytes() for path in kept)]


@dataclass
class Findings:
    """What a run of the fuzzer found."""

    runs: int = 0
    refused: int = 0
    slowest: float = 0.0
    broken: list[tuple[bytes, str]] = field(default_factory=list)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise in a reader that takes longer; compiled code is told when it returns."""

    def ring(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def mutated(chance: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Return an input with some edits: bytes overwritten, left out, repeated, words put in, two inputs joined."""
    content = bytearray(chance.choice(corpus))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 9))):
        start = chance.randrange(len(content) + 1)
        end = min(len(content), start + chance.choice((1, 1, 2, 4, 16, 64)))
        match chance.randrange(8):
            case 0:
                content[start:end] = bytes(chance.randrange(256) for _ in range(end - start))
            case 1:
                del content[start:end]
            case 2:
                content[start:start] = content[start:end] * chance.choice((1, 2, 50))
            case 3:
                other = chance.choice(corpus)
                place = chance.randrange(len(other) + 1)
                content[start:end] = other[place : place + chance.choice((4, 20, 200))]
            case 4:
                content[start:] = chance.choice(corpus)[chance.randrange(1 + len(content)) :]
            case 5 if numbers := list(re.finditer(rb"\d+", content)):
                found = chance.choice(numbers)
                content[found.start() : found.end()] = str(chance.choice((0, 1, 2**31, 2**63, 10**30))).encode()
            case _:
                content[start : chance.choice((start, end))] = chance.choice(WORDS)
    return bytes(content[:200_000])


def trouble_with(target: Target, content: bytes, found: Findings) -> str:
    """Read an input; returns what went wrong, or nothing. A refusal is one line of ours."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    trouble = ""
    try:
        with time_limit(5 * SLOWEST):
            target.read(content)
    except VeilcubeError as refusal:
        found.refused += 1
        words = str(refusal)
        if not words.strip() or "\n" in words or len(words) > LONGEST_MESSAGE:
            trouble = f"a refusal that is not one short sentence: {words[:200]!r}"
    except TooSlowError:
        trouble = "it hangs"
    except Exception as problem:
        trouble = f"{type(problem).__name__}: {problem}"[:300]
    taken = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    found.runs, found.slowest = found.runs + 1, max(found.slowest, taken)
    if not trouble and taken > SLOWEST:
        trouble = f"it takes {taken:.1f} s"
    return trouble or (f"it takes {grown / 2**20:.0f} MiB" if grown > LARGEST else "")


def fuzz(target: Target, seconds: float, seed: int, most: int | None = None) -> Findings:
    """Feed a reader for so long, or so often; the same seed gives the same inputs."""
    chance, found, corpus = random.Random(f"{target.name} {seed}"), Findings(), target.corpus
    for content in corpus:
        if words := trouble_with(target, content, found):
            found.broken.append((content, words))
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and found.runs < (most or found.runs + 1) and len(found.broken) < 20:
        content = mutated(chance, corpus)
        if words := trouble_with(target, content, found):
            found.broken.append((content, words))
    return found


def as_json(content: bytes) -> object:
    """Return an input as JSON; a refusal of ours if it is none, as whoever sends it would be told."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise VeilcubeError("no JSON") from None
