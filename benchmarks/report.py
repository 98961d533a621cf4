"""What benchmarks share: where tables go, how rows are kept, and how work is timed."""

import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.console import Console


def make_console(width_of_files: int) -> Console:
    """Return where tables go; off a terminal they keep this width rather than lose columns."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=width_of_files)


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    """Write data classes of one kind, one a line; what is not known stays empty."""
    if not rows:
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(rows[0])])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def best_seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the least time of several runs."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
