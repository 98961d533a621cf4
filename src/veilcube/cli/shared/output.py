"""How commands speak: tables and sentences for people, one JSON object for programs, and a progress bar.

Progress is a share of the table, never a number of rows.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import NoReturn

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from veilcube.system import show_confidence, show_interval, show_number

__all__ = [
    "print_json",
    "print_json_list",
    "printable",
    "progress_bar",
    "say",
    "say_exactly",
    "show_confidence",
    "show_interval",
    "show_number",
    "show_size",
    "show_table",
]


@contextmanager
def progress_bar(what: str, *, hidden: bool) -> Iterator[Callable[[float | None], None]]:
    """Give a callback that takes the share that is done (None if unknown) and draws it on the terminal, if any."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    quiet = hidden or not sys.stderr.isatty()
    with Progress(*columns, console=console(stderr=True), transient=True, disable=quiet) as bars:
        bar = bars.add_task(what, total=None)

        def advance(share: float | None) -> None:
            bars.update(bar, total=None if share is None else 1.0, completed=share or 0.0)

        yield advance


# Text that goes to a file or another program is never folded or cut to the width of a terminal that is not there.
_UNLIMITED = 10_000


class _PlainConsole(Console):
    """A console that reports a closed pipe to its caller instead of ending the program."""

    def on_broken_pipe(self) -> NoReturn:
        """Let the one place that ends the program know."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console for text as it is: no markup, no guessed colours, ``NO_COLOR`` respected."""
    found = _PlainConsole(stderr=stderr, markup=False, highlight=False, emoji=False)
    return found if found.is_terminal else _PlainConsole(stderr=stderr, markup=False, emoji=False, width=_UNLIMITED)


def printable(text: str) -> str:
    """Return text in which nothing steers a terminal: labels of a release may come from anybody."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def say(*lines: str, style: str = "") -> None:
    """Print sentences, one paragraph a line, folded between words on a terminal."""
    for line in lines:
        console().print(Text(printable(line), style=style))


def say_exactly(text: str) -> None:
    """Print lines that are meant to be copied, without folding them."""
    sys.stdout.write("".join(f"{printable(line)}\n" for line in text.splitlines()))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[str] = ()) -> None:
    """Print an aligned table; the columns in ``numbers`` stand on the right."""
    right = [name in set(numbers) for name in columns]
    cells = [[printable(str(entry)) for entry in row] for row in rows]
    screen = console()
    if not screen.is_terminal:
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in _plain_table(list(columns), cells, right)))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, is_number in zip(columns, right, strict=True):
        table.add_column(Text(printable(name)), justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    screen.print(table)


def _plain_table(columns: list[str], cells: list[list[str]], right: Sequence[bool]) -> Iterator[str]:
    head = [printable(name) for name in columns]
    widths = [max(map(cell_len, column)) for column in zip(head, *cells, strict=True)]
    for row in [head, ["-" * width for width in widths], *cells]:
        gaps = [" " * (width - cell_len(cell)) for width, cell in zip(widths, row, strict=True)]
        pairs = zip(gaps, row, right, strict=True)
        yield "  ".join(gap + cell if is_number else cell + gap for gap, cell, is_number in pairs)


def print_json(data: Mapping[str, object]) -> None:
    """Print one JSON object in ASCII; numbers that JSON has no word for become null."""
    sys.stdout.write(json.dumps(_plain(data), indent=2, allow_nan=False) + "\n")


def print_json_list(data: Mapping[str, object], name: str, entries: Iterable[Mapping[str, object]]) -> None:
    """Print one JSON object that ends with a list, an entry at a time: the list may be longer than memory."""
    entries = iter(entries)
    first = next(entries, None)  # what cannot be read at all is an error, and not half an object
    head = json.dumps(_plain(data), indent=2, allow_nan=False).removesuffix("\n}")
    sys.stdout.write(f"{head},\n  {json.dumps(name)}: [")
    if first is not None:
        for number, entry in enumerate(chain([first], entries)):
            written = json.dumps(_plain(entry), indent=2, allow_nan=False).replace("\n", "\n    ")
            sys.stdout.write(f"{',' if number else ''}\n    {written}")
        sys.stdout.write("\n  ")
    sys.stdout.write("]\n}\n")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def show_size(size: int) -> str:
    """Return a number of bytes for people.

    >>> show_size(4853), show_size(120_000_000)
    ('4.85 kB', '120 MB')
    """
    value, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
