"""Compiled code on disk: loaded without what only compiling needs, and compiled again where it cannot be read."""

import subprocess
import sys
from pathlib import Path

LOOP = """
import sys
from {module} import Pair
from veilcube.system import compiled

@compiled
def add(pair: Pair) -> float:
    return pair.left + pair.right

assert add(Pair(1.0, 2.0)) == 3.0
print(sum(add._dispatcher._cache_hits.values()), "numba.np.linalg" in sys.modules)
"""
PAIR = "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    left: float\n    right: float\n"


def _run(folder: Path, module: str) -> str:
    (folder / f"{module}.py").write_text(PAIR)
    (folder / "adding.py").write_text(LOOP.format(module=module))
    done = subprocess.run(
        [sys.executable, "-c", "import adding"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_code_on_disk_is_loaded_without_what_only_compiling_needs(tmp_path: Path) -> None:
    assert _run(tmp_path, "pairs") == "0 True"
    assert _run(tmp_path, "pairs") == "1 False"


def test_an_upgrade_that_renames_a_module_is_compiled_again_and_kept(tmp_path: Path) -> None:
    _run(tmp_path, "pairs")
    (tmp_path / "pairs.py").unlink()
    assert _run(tmp_path, "couples") == "0 True"
    assert _run(tmp_path, "couples") == "1 False"


def test_a_loop_is_compiled_again_when_one_that_it_calls_or_a_number_that_it_names_changes(tmp_path: Path) -> None:
    inner = "from veilcube.system import compiled\n\nFACTOR = {}\n\n@compiled\ndef inner(x): return x + {}\n"
    (tmp_path / "outer.py").write_text(
        "from inner import FACTOR, inner\nfrom veilcube.system import compiled\n\n"
        "@compiled\ndef outer(x): return FACTOR * inner(x)\n\nprint(outer(1))\n"
    )

    def run(factor: int, added: int) -> str:
        (tmp_path / "inner.py").write_text(inner.format(factor, added))
        program = [sys.executable, "-B", "-c", "import outer"]
        return subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    assert run(1, 1) == "2"
    assert run(1, 2) == "3"
    assert run(3, 2) == "9"


def test_a_loop_runs_where_its_code_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "doubling.py").write_text(
        "import resource\nfrom veilcube.system import compiled\n\n@compiled\ndef double(x): return 2 * x\n\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # as a full disk\nprint(double(21))\n"
    )
    program = [sys.executable, "-B", "-c", "import doubling"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "42", done.stderr


def test_a_loop_is_compiled_again_when_it_is_compiled_in_another_way(tmp_path: Path) -> None:
    (tmp_path / "dividing.py").write_text("from way import way\n\n@way\ndef divide(x, y): return x / y\n")

    def run(model: str) -> str:
        (tmp_path / "way.py").write_text(
            "from functools import partial\nfrom veilcube.system.loops import compile_loop\n\n"
            f"way = partial(compile_loop, error_model='{model}')\n"
        )
        program = [sys.executable, "-B", "-c", "import dividing; print(dividing.divide(1.0, 0.0))"]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    assert run("numpy") == "inf"
    assert run("python") == "ZeroDivisionError: division by zero"
