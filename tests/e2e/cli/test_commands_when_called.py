"""A list of commands is shown without loading them, in the words that they have themselves."""

import subprocess
import sys
from pathlib import Path

import pytest

import veilcube as vc
from veilcube.cli.app import COMMANDS, _load
from veilcube.cli.commands.demo import SCHEMA_FILE


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


def test_the_kinds_of_errors_are_reached_without_an_import_of_their_own() -> None:
    program = "import veilcube as vc; print(issubclass(vc.errors.QueryError, vc.VeilcubeError))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def _loaded_by(words: list[str], names: tuple[str, ...]) -> str:
    program = (
        f"import sys; from veilcube.cli import main; main({words!r}); "
        f"print([name for name in {names!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_question_to_a_small_release_needs_no_compiler_and_little_of_scipy(tmp_path: Path) -> None:
    schema, file = vc.Schema([vc.Ordinal("age", 17, 90), vc.Nominal("sex", ["Female", "Male"])]), tmp_path / "a.veil"
    vc.release(vc.Cube(schema, [[40, 38]] * 74), epsilon=1).save(file)
    heavy = ("numba", "duckdb", "scipy.special", "scipy.interpolate", "scipy.linalg")
    assert _loaded_by(["query", str(file), "age >= 65"], heavy) == "[]"


def test_a_plan_needs_no_release_no_sql_and_little_of_scipy() -> None:
    heavy = ("veilcube.analyst", "duckdb", "pyarrow", "sqlglot", "scipy.special", "scipy.interpolate", "scipy.linalg")
    assert _loaded_by(["plan", str(SCHEMA_FILE), "--epsilon", "1"], heavy) == "[]"
