"""Loops that may be plain: short ones run without the compiler, and with the same results."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import numpy as np
from veilcube.system import compiled_if_long

@compiled_if_long
def divide(numbers: tuple[np.ndarray, np.ndarray], out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = numbers[0][i] / numbers[1][i]

def divides_in_plain_python(size: int) -> bool:
    numbers, out = (np.arange(size) + 1.0, np.arange(size) * 0.1), np.empty(size)
    divide(numbers, out)
    assert np.isinf(out[0]) and np.array_equal(out[1:], numbers[0][1:] / numbers[1][1:])
    return "numba" not in sys.modules

"""


def _run(folder: Path, sizes: str) -> str:
    script = folder / "dividing.py"
    script.write_text(PROGRAM + f"print([divides_in_plain_python(size) for size in {sizes}])")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_short_loop_needs_no_compiler_and_a_long_one_does(tmp_path: Path) -> None:
    assert _run(tmp_path, "(10, 100, 10_000)") == "[True, True, False]"


def test_many_short_loops_are_compiled_in_the_end(tmp_path: Path) -> None:
    found = _run(tmp_path, "(1_000,) * 10")
    assert found.startswith("[True, ")
    assert found.endswith(", False]")
