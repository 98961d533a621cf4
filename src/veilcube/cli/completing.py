"""Completion in shells: the script that a shell reads once, and the answer to each press of the key.

A press of the key lists commands without loading them, and loads the one command whose options are asked for. A shell
is named and not guessed: guessing looks at the processes around.
"""

import os
import sys
from contextlib import redirect_stderr
from enum import StrEnum
from pathlib import Path
from typing import Any

from typer import completion

# What it shows is not said to be exported.
_typer: Any = completion

VARIABLE = "_VEILCUBE_COMPLETE"
_COMMAND = "veilcube"


class Shell(StrEnum):
    """The shells that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def script_for(shell: Shell) -> str:
    """Return the lines that teach a shell."""
    return str(_typer.get_completion_script(prog_name=_COMMAND, complete_var=VARIABLE, shell=str(shell)))


def install_for(shell: Shell) -> str:
    """Write these lines where the shell reads them at its start; return where."""
    _, path = _typer.install(shell=str(shell), prog_name=_COMMAND, complete_var=VARIABLE)
    return str(path)


def answer_shell(command: Any) -> int:
    """Answer a press of the key; whatever goes wrong stays silent: it would land in a line that is being typed."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        try:
            _typer.completion_init()
            code = int(_typer.shell_complete(command, {}, _COMMAND, VARIABLE, os.environ[VARIABLE]))
        except Exception:
            return 1
    sys.stdout.flush()
    return code
