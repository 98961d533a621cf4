"""How a command ends when it cannot go on: one line, an exit code, and never a traceback.

The frames of a traceback, and the texts of exceptions that veilcube did not write, may carry values of a private
table. So only veilcube's own messages are printed; anything unexpected is named by its type alone, and its traceback
is printed only for who sets ``VEILCUBE_DEBUG=1``.
"""

import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from veilcube.cli.shared import print_json, printable
from veilcube.errors import CapacityError, PublicNote, VeilcubeError
from veilcube.system import did_you_mean

USAGE = 2
UNEXPECTED = 1
INTERRUPTED = 130
BROKEN_PIPE = 141
SIGNALLED = 128  # what shells add to a signal's number


@dataclass(frozen=True)
class Failure:
    """Why a command ended: the kind of problem, one sentence, and the exit code."""

    kind: str
    message: str
    exit_code: int


def describe(problem: BaseException, signal_number: int | None = None) -> Failure:
    """Return what to tell about a problem, with nothing in it that could be private.

    After a signal it is that signal which ended the command, whatever a library made of it.
    """
    if signal_number is not None:
        return Failure("Interrupted", _with_notes("interrupted", problem), SIGNALLED + signal_number)
    found = _describe(problem)
    return Failure(found.kind, _with_notes(found.message, problem), found.exit_code)


def _describe(problem: BaseException) -> Failure:
    match problem:
        case VeilcubeError():
            return Failure(type(problem).__name__, _one_line(str(problem)), problem.exit_code)
        case typer.TyperException():
            return Failure("UsageError", _usage(problem) + _where_to_look(problem), USAGE)
        case MemoryError():
            advice = "there is not enough memory for this; use a schema with fewer cells or a larger machine"
            return Failure("CapacityError", advice, CapacityError.exit_code)
        case KeyboardInterrupt() | typer.Abort():
            return Failure("Interrupted", "interrupted", INTERRUPTED)
        case OSError(strerror=str(reason)):
            return Failure("UnexpectedError", f"the operating system refused: {reason}; check paths and permissions", 1)
    advice = "run it again with VEILCUBE_DEBUG=1 to see where, keep that private, and report it"
    return Failure("UnexpectedError", f"something unexpected went wrong ({type(problem).__name__}); {advice}", 1)


def _usage(problem: typer.TyperException) -> str:
    """Say what is wrong with how a command was written, and which word was probably meant."""
    context = getattr(problem, "ctx", None)
    message = _one_line(problem.format_message()).rstrip(".").replace("Value error, ", "")
    for pattern, known_to in _MISTYPED.items():
        found = pattern.search(message)
        if found is not None and (context is not None or known_to is _choices):
            hint = did_you_mean(found[1], known_to(found, context)).rstrip()
            return f"{message[: found.end()]}{f'; {hint}' if hint else ''}"
    return message


def _commands(_: re.Match[str], context: Any) -> list[str]:
    return list(context.command.list_commands(context))


def _options(_: re.Match[str], context: Any) -> list[str]:
    return [name for param in context.command.params for name in (*param.opts, *param.secondary_opts)]


def _choices(found: re.Match[str], _: Any) -> list[str]:
    return re.findall("'([^']*)'", found[2])


_MISTYPED: Mapping[re.Pattern[str], Callable[[re.Match[str], Any], list[str]]] = {
    re.compile(r"^No such command '([^']*)'"): _commands,
    re.compile(r"^No such option: (\S+)"): _options,
    re.compile(r"'([^']*)' is not one of ((?:'[^']*'(?:, )?)+)"): _choices,
}


def _with_notes(message: str, problem: BaseException) -> str:
    """Add what veilcube noted about the problem on its way, which is about the budget and nothing private."""
    notes: list[str] = []
    seen: BaseException | None = problem
    while seen is not None:
        noted = getattr(seen, "__notes__", [])
        notes += [note for note in noted if isinstance(note, PublicNote) and note not in notes]
        seen = seen.__cause__ or seen.__context__
    return "; ".join([message, *map(_one_line, notes)])


def tell(problem: BaseException, *, as_json: bool, signal_number: int | None = None) -> int:
    """Print what is to be said about a problem and return the exit code; an interruption that cost nothing is quiet."""
    failure = describe(problem, signal_number)
    if os.environ.get("VEILCUBE_DEBUG") == "1" and not isinstance(problem, typer.TyperException):
        traceback.print_exception(problem, file=sys.stderr)
    if as_json:
        as_json = _print_as_json(failure)
    if not as_json and failure.message != "interrupted":
        sys.stderr.write(f"error: {failure.message}\n")
    return failure.exit_code


def show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning of veilcube's own as one line; those of libraries are for who sets ``VEILCUBE_DEBUG=1``."""
    if issubclass(category, UserWarning) or os.environ.get("VEILCUBE_DEBUG") == "1":
        sys.stderr.write(f"warning: {_one_line(str(message))}\n")


def _print_as_json(failure: Failure) -> bool:
    """Print a failure for programs; False if the output cannot be written, on a full disk for one."""
    facts = {"kind": failure.kind, "message": failure.message, "exit_code": failure.exit_code}
    try:
        print_json({"error": facts})
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        forget_output()
        return False
    return True


def forget_output() -> None:
    """Let what could not be written go, because a second complaint at exit would be about the same thing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _where_to_look(problem: typer.TyperException) -> str:
    context = getattr(problem, "ctx", None)
    return f" (see '{context.command_path} --help')" if context is not None else ""
