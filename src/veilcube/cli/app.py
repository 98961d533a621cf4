"""The ``veilcube`` command: its subcommands, and the one place where every run ends."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from veilcube.cli import history, ledger, schema
from veilcube.cli.demo import demo
from veilcube.cli.failures import BROKEN_PIPE, SIGNALLED, UNEXPECTED, forget_output, show_warning, tell
from veilcube.cli.info import info
from veilcube.cli.options import CommandGroup
from veilcube.cli.output import say
from veilcube.cli.plan import plan
from veilcube.cli.query import query
from veilcube.cli.refine import refine
from veilcube.cli.release import release
from veilcube.cli.synthesize import synthesize

_ENDINGS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__]

# Boxes and colours are for terminals; help that goes elsewhere is plain text. A pretty exception would print frames,
# and with them private values.
app = CommandGroup(
    name="veilcube",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
)
app.command()(demo)
app.add_typer(schema.app, name="schema")
app.command()(plan)
app.command()(release)
app.command()(query)
app.command()(refine)
app.command()(synthesize)
app.command()(info)
app.add_typer(ledger.app, name="ledger")
app.add_typer(history.app, name="history")


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"veilcube {version('veilcube')}")
        raise typer.Exit


@app.callback()
def veilcube(
    shown: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Release a table about people once, differentially private, and answer any count query with an interval."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no exception leaves here."""
    # A stream that was closed before the command began takes what is said, and nobody hears it.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with _unwinding_when_told_to_end() as received, warnings.catch_warnings():
            warnings.showwarning = show_warning
            return _run(words, received)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else UNEXPECTED
    except BrokenPipeError:
        forget_output()
        return BROKEN_PIPE


@contextmanager
def _unwinding_when_told_to_end() -> Iterator[list[int]]:
    """Let a request to end pass through the code like an exception, so that folders with private rows are removed.

    Gives the list of the signals that were received, whatever libraries make of the exceptions.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread may set handlers
        return

    def unwind(number: int, _: FrameType | None) -> None:
        # Further requests must not cut short the cleaning up that this one begins, but for those of a person who sees
        # that it takes too long.
        repeated = bool(received)
        received.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if not repeated:
            raise SystemExit(SIGNALLED + number)

    # What is ignored stays ignored: nohup relies on it.
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    replaced = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in replaced:
        signal.signal(number, unwind)
    try:
        yield received
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


def _run(words: list[str], received: list[int]) -> int:
    try:
        command = typer.main.get_command(app)
        with command.make_context("veilcube", words) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        sys.stdout.flush()
        return end.exit_code
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt, SystemExit) as problem:
        if isinstance(problem, SystemExit) and not received:
            raise
        return tell(problem, as_json="--json" in words, signal_number=received[0] if received else None)
    return 0
