"""A progress bar for long work: a share of the table, never a number of rows."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from veilcube.cli.output import console


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
