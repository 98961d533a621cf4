"""The ``veilcube`` command: its subcommands, and the one place where every run ends."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from veilcube.cli.completing import VARIABLE, Shell, answer_shell, install_for, script_for
from veilcube.cli.failures import BROKEN_PIPE, SIGNALLED, UNEXPECTED, forget_output, show_warning, tell
from veilcube.cli.shared import CommandGroup, Verbose, quiet_unless_asked, say, say_exactly
from veilcube.starting import is_command

_ENDINGS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__]

# What each command is for. It is said here once more, so that a list of commands need not load them, which takes a
# second; a test compares it with their own words.
COMMANDS: Mapping[str, str] = {
    "demo": "Show the whole way on the public UCI Adult table.",
    "plan": "Show the expected error of a release, or how much data is enough.",
    "cap": "Measure how many rows persons have, and recommend how many to keep of each.",
    "release": "Turn a private table into a release file that anyone may read.",
    "query": "Ask a release; every answer comes with an interval.",
    "refine": "Make the answers of a release obey known facts.",
    "export": "Write tables of a release as CSV, Parquet or a workbook.",
    "report": "Write a page about a release: charts with intervals, tables, its card.",
    "publish": "Write a site about a release that answers questions in the browser, without a server.",
    "synthesize": "Draw synthetic rows that follow what was measured.",
    "info": "Show the schema, the privacy statement and the plan of a release.",
    "schema": "Check a schema file, or draft one for a table.",
    "ledger": "Keep account of the privacy budget of datasets.",
    "history": "See the answers that a dataset gave, and learn from them at no cost in privacy.",
    "serve": "Serve datasets, releases and budgets of a folder to people and programs.",
    "audit": "Look for tables by which a mechanism breaks its promise.",
}

# The folder of each command: of those for whoever holds the table, and for whoever reads what was released.
FOLDERS: Mapping[str, Sequence[str]] = {
    "curator": ("plan", "cap", "release", "schema", "ledger", "serve", "audit"),
    "analyst": ("query", "refine", "export", "report", "publish", "synthesize", "info", "history"),
}


class CommandsWhenCalled(TyperGroup):
    """All commands, each loaded when it is called."""

    _is_listed = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of a user's way."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load a command, or return one that has no more than its words while all are listed."""
        if cmd_name not in COMMANDS:
            return None
        if self._is_listed:
            return TyperCommand(name=cmd_name, help=COMMANDS[cmd_name])
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help without loading any command."""
        with self._listed():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return how a word may go on, without loading any command."""
        with self._listed():
            return list(super().shell_complete(ctx, incomplete))

    @contextmanager
    def _listed(self) -> Iterator[None]:
        self._is_listed = True
        try:
            yield
        finally:
            self._is_listed = False


def _app(**settings: Any) -> CommandGroup:
    # Boxes and colours are for terminals; help that goes elsewhere is plain text. A pretty exception would print
    # frames, and with them private values.
    style: Literal["rich"] | None = "rich" if sys.stdout is not None and sys.stdout.isatty() else None
    return CommandGroup(
        add_completion=False,  # it would load at every start what only shells ask for (completing.py)
        pretty_exceptions_enable=False,
        rich_markup_mode=style,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def _load(name: str) -> Any:
    """Return a command, or a group of commands, from the module of its name."""
    folder = next((f".{folder}" for folder, names in FOLDERS.items() if name in names), "")
    module, alone = import_module(f"veilcube.cli.commands{folder}.{name}"), _app()
    if hasattr(module, "app"):
        alone.add_typer(module.app, name=name)
    else:
        alone.command(name, **getattr(module, "SETTINGS", {}))(getattr(module, name))
    return typer.main.get_group(alone).commands[name]


app = _app(name="veilcube", cls=CommandsWhenCalled)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"veilcube {version('veilcube')}")
        raise typer.Exit


def _show_completion(shell: Shell | None) -> None:
    if shell is not None:
        say_exactly(script_for(shell))
        raise typer.Exit


def _install_completion(shell: Shell | None) -> None:
    if shell is not None:
        say(f"Wrote {install_for(shell)}. Completion works in {shell} once you start it again.")
        raise typer.Exit


@app.callback()
def veilcube(
    version_shown: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    verbose: Verbose = False,
    installed: Annotated[
        Shell | None,
        typer.Option(
            "--install-completion",
            callback=_install_completion,
            is_eager=True,
            help="Let the Tab key complete commands and options in this shell.",
        ),
    ] = None,
    completion_shown: Annotated[
        Shell | None,
        typer.Option(
            "--show-completion",
            callback=_show_completion,
            is_eager=True,
            help="Print the lines that --install-completion writes.",
        ),
    ] = None,
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
        if VARIABLE in os.environ:
            return answer_shell(typer.main.get_command(app))
        with _unwinding_when_told_to_end() as received, warnings.catch_warnings(), quiet_unless_asked():
            warnings.showwarning = show_warning
            code = _run(words, received)
        if is_command() and threading.current_thread() is threading.main_thread():
            if received:
                _end_at_once(code)
            # All is said and done: an interruption while Python itself ends would only change the exit code.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else UNEXPECTED
    except BrokenPipeError:
        forget_output()
        return BROKEN_PIPE


def _end_at_once(code: int) -> NoReturn:
    """End an interrupted command when all is cleaned up: libraries that were cut short would complain at a slow end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


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
