"""The ``veilcube`` command: its subcommands, and the one place where every run ends."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated

import typer

from veilcube.cli import ledger, schema
from veilcube.cli.demo import demo
from veilcube.cli.failures import BROKEN_PIPE, tell
from veilcube.cli.info import info
from veilcube.cli.output import say
from veilcube.cli.plan import plan
from veilcube.cli.query import query
from veilcube.cli.release import release

# Boxes and colours are for terminals; help that goes elsewhere is plain text. A pretty exception would print frames,
# and with them private values.
app = typer.Typer(
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
app.command()(info)
app.add_typer(ledger.app, name="ledger")


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
        return _run(words)
    except BrokenPipeError:
        # Whoever read the output has gone; a second complaint at exit would be about the same thing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


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
