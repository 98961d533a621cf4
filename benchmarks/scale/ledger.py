"""Ledgers: charges a second beside bare inserts that wait for the disk, and what a charge costs with many behind it.

Run: python -m benchmarks.scale.ledger [seconds]. Each figure and what it is compared with are measured in one run.
"""

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from benchmarks.scale.long_ledgers import add_many_charges, statement_of
from veilcube.curator.ledger import Ledger

_STATEMENT = statement_of(Fraction(1, 1000))


def rate_of(writers: int, seconds: float, prepare: Callable[[], Callable[[], object]]) -> tuple[float, int, int]:
    """Return how often processes did something a second, the fewest that one of them did, and how many refusals."""
    reading, writing = os.pipe()
    begin = time.monotonic() + 1.0
    children = []
    for _ in range(writers):
        child = os.fork()
        if child == 0:
            done = refused = 0
            action = prepare()
            time.sleep(max(0.0, begin - time.monotonic()))
            while time.monotonic() < begin + seconds:
                try:
                    action()
                    done += 1
                except Exception:
                    refused += 1
            took = time.monotonic() - begin
            os.write(writing, f"{done} {refused} {took}\n".encode())
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as told:
        counts = [line.split() for line in told]
    rate = sum(int(done) / float(took) for done, _, took in counts)
    return rate, min(int(done) for done, _, _ in counts), sum(int(refused) for _, refused, _ in counts)


def bare_insert(path: Path) -> Callable[[], object]:
    """Return what inserts one row into a table of a file, and waits for the disk, at a ledger's settings."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("PRAGMA synchronous=EXTRA")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, told TEXT)")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (told) VALUES (?)", ("a" * 600,))
        connection.execute("COMMIT")

    return insert


def rates(folder: Path, seconds: float) -> None:
    """Print charges a second beside one bare writer."""
    for writers in (1, 8, 64):
        bare, _, _ = rate_of(1, seconds, lambda: bare_insert(folder / "bare.db"))
        ledger = Ledger(folder / f"{writers}.db", timeout=60)
        ledger.create("people", 10**6)
        charge = lambda: ledger.charge("people", _STATEMENT, purpose="a benchmark")  # noqa: E731, B023
        found, fewest, refused = rate_of(writers, seconds * (1 if writers < 64 else 3), lambda: charge)  # noqa: B023
        again, _, _ = rate_of(1, seconds, lambda: bare_insert(folder / "bare.db"))
        beside = (bare + again) / 2
        print(
            f"SQLite, {writers} writers: {found:.0f} charges a second, bare inserts {beside:.0f} (ratio "
            f"{found / beside:.2f}); fewest of one writer {fewest}, refused {refused}"
        )


def costs(folder: Path) -> None:
    """Print what a charge costs the processor with few and many charges behind it."""
    ledgers = []
    for charges in (10**2, 10**6):
        ledger = Ledger(folder / f"{charges}-behind.db")
        ledger.create("people", 10**6)
        add_many_charges(ledger, "people", [Fraction(1, 1000 + number % 5000) for number in range(charges)])
        ledgers.append(ledger)
    spent: list[list[float]] = [[], []]
    for _ in range(60):
        for ledger, times in zip(ledgers, spent, strict=True):
            before = time.process_time()
            ledger.charge("people", _STATEMENT, purpose="a benchmark")
            times.append(time.process_time() - before)
    few, many = (statistics.median(times) for times in spent)
    print(f"CPU of a charge: {1e3 * few:.2f} ms with 10^2 behind it, {1e3 * many:.2f} ms with 10^6 ({many / few:.2f})")
    before = time.process_time()
    read = sum(1 for charge, _ in zip(ledgers[1].charges("people"), range(100_000), strict=False))
    print(f"history: {read} charges read in pages in {time.process_time() - before:.1f} s of CPU")
    with closing(sqlite3.connect(str(ledgers[1].path))) as connection:
        size = connection.execute("PRAGMA page_count").fetchone()[0] * 4096
    print(f"a ledger of 10^6 charges has {size / 1e6:.0f} MB")


def main() -> None:
    """Run all of it on a folder of the disk at hand."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    with tempfile.TemporaryDirectory() as folder:
        rates(Path(folder), seconds)
        costs(Path(folder))


if __name__ == "__main__":
    main()
