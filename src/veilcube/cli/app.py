"""The ``veilcube`` command: its subcommands, and the one place where every run ends."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from io import TextIOWrapper
from types import FrameType
from typing import Annotated

import typer

from veilcube.cli import history, ledger, schema
from veilcube.cli.demo import demo
from veilcube.cli.failures import BROKEN_PIPE, UNEXPECTED, tell
from veilcube.cli.info import info
from veilcube.cli.options import CommandGroup
from veilcube.cli.output import say
from veilcube.cli.plan import plan
from veilcube.cli.query import query
from veilcube.cli.refine import refine
from veilcube.cli.release import release
from veilcube.cli.synthesize import synthesize

_SIGNALLED = 128  # what shells add to a signal's number
_ENDINGS = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__]

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
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with _unwinding_when_terminated():
            return _run(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else UNEXPECTED
    except BrokenPipeError:
        # Whoever read the output has gone; a second complaint at exit would be about the same thing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


@contextmanager
def _unwinding_when_terminated() -> Iterator[None]:
    """Let a request to end pass through the code like an exception, so that folders with private rows are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    received: list[int] = []

    def unwind(number: int, _: FrameType | None) -> None:
        # Further requests must not cut short the cleaning up that this one begins.
        repeated = bool(received)
        received.append(number)
        if not repeated:
            raise SystemExit(_SIGNALLED + number)

    # What is ignored stays ignored: nohup relies on it.
    replaced = [number for number in _ENDINGS if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
        if received:  # whatever a library made of the exception
            raise SystemExit(_SIGNALLED + received[0])


def _run(words: list[str]) -> int:
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
    except (Exception, KeyboardInterrupt) as problem:
        return tell(problem, as_json="--json" in words)
    return 0
