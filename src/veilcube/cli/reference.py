"""The page docs/reference/command-line.md, written from the commands themselves so that it cannot drift.

``python -m veilcube.cli.reference docs/reference/command-line.md`` writes it; a test fails when it is out of date.
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import typer

from veilcube import errors
from veilcube.cli.app import app
from veilcube.cli.failures import BROKEN_PIPE, INTERRUPTED, UNEXPECTED, USAGE

Command: TypeAlias = Any  # Typer keeps the class of its commands to itself

_HEAD = """# The command line

<!-- Written by `python -m veilcube.cli.reference docs/reference/command-line.md`; do not edit. -->

Every command takes `--help` (or `-h`) and, where it prints anything, `--json`: then exactly one JSON object goes to
standard output, for an error `{"error": {"kind": ..., "message": ..., "exit_code": ...}}`. Without it, an error is
one line on standard error. Tracebacks may hold private values, so none is printed unless `VEILCUBE_DEBUG=1` is set.
Colours are for terminals only, and `NO_COLOR=1` turns them off.

`--verbose`, before or after a command, tells each step on standard error; a step names schemas, plans, promises and
files, and never a count or a time, which follow from the table. `veilcube --install-completion bash` (or `zsh`,
`fish`) lets the Tab key complete commands, options and their choices; `veilcube --show-completion bash` prints what
it would write. `veilcube --version` prints the version.
"""

_OTHER_ENDS = {
    0: ("", "All went well."),
    UNEXPECTED: ("UnexpectedError", "Something unexpected; the message names its type only."),
    USAGE: ("UsageError", "The command was not written as it must be: an unknown option, a missing argument."),
    INTERRUPTED: ("Interrupted", "Stopped by Ctrl-C."),
    BROKEN_PIPE: ("", "Whoever read the output stopped reading, as `head` does."),
}


def render() -> str:
    """Return the page as Markdown."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="veilcube")
    return "\n".join([_HEAD, *_sections(root, context), _exit_codes()])


def _sections(command: Command, context: typer.Context) -> Iterator[str]:
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    if not names:
        yield _section(command, context)
    for name in names:
        inner = command.get_command(context, name)
        yield from _sections(inner, typer.Context(inner, info_name=name, parent=context))


def _section(command: Command, context: typer.Context) -> str:
    described = [(param, param.get_help_record(context)) for param in command.params]
    rows = [f"| `{_cell(_name(param, record[0]))}` | {_cell(record[1])} |" for param, record in described if record]
    arguments = [_placeholder(param) for param in command.params if param.param_type_name == "argument"]
    usage = " ".join([context.command_path, *arguments, "[OPTIONS]"])
    words = inspect.cleandoc(command.help or "")
    table = ["| argument or option | meaning |", "|---|---|", *rows]
    return "\n".join([f"## {context.command_path}", "", words, "", f"    {usage}", "", *table, ""])


def _name(param: Any, shown: str) -> str:
    return str(param.metavar) if param.param_type_name == "argument" else shown


def _placeholder(param: Any) -> str:
    name = f"{param.metavar}..." if param.nargs == -1 else str(param.metavar)
    return name if param.required else f"[{name}]"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _exit_codes() -> str:
    ends = dict(_OTHER_ENDS)
    for found in errors.VeilcubeError.__subclasses__():
        if found.__module__ == errors.__name__:
            ends[found.exit_code] = (found.__name__, inspect.cleandoc(found.__doc__ or ""))
    rows = [
        f"| {code} | {f'`{kind}`' if kind else ''} | {_cell(words)} |" for code, (kind, words) in sorted(ends.items())
    ]
    return "\n".join(["## Exit codes", "", "| code | kind | meaning |", "|---|---|---|", *rows, ""])


def main() -> None:
    """Write the page to the file that is named, or print it."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main()
