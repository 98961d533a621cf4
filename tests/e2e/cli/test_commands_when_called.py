"""A list of commands is shown without loading them, in the words that they have themselves."""

import subprocess
import sys

import pytest

from veilcube.cli.app import COMMANDS, _load


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says(name: str) -> None:
    said = " ".join(_load(name).help.split())
    assert said.startswith(COMMANDS[name])


def test_a_list_of_commands_loads_none_of_what_they_need() -> None:
    program = (
        "import sys; from veilcube.cli import main; main(['--help']); "
        "print([name for name in ('numba', 'duckdb', 'pyarrow', 'scipy.optimize') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert all(name in done.stdout for name in COMMANDS)


def test_importing_veilcube_loads_nothing_heavy() -> None:
    program = "import sys, veilcube; print([name for name in ('numpy', 'numba', 'duckdb') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
