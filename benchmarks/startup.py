"""How long a command takes to start, as a multiple of what ``import numpy`` takes in the same run.

Bars: ``veilcube --help`` 4 times, ``query FILE WHERE`` 8 times, ``plan`` on the schema of the demo 15 times.
Each is the best of several runs, taken in turn so that all meet the same load, with bytecode on disk as an installation
has it.
Run: python -m benchmarks.startup
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import veilcube as vc
from veilcube.cli.commands.demo import SCHEMA_FILE

ROUNDS = 7
COMMAND = (sys.executable, "-m", "veilcube.cli")
BARS = {"veilcube --help": 4, "veilcube query FILE WHERE": 8, "veilcube plan SCHEMA": 15}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "ages.veil"
        ages = vc.Schema([vc.Ordinal("age", 17, 90), vc.Nominal("sex", ["Female", "Male"])])
        vc.release(vc.Cube(ages, [[40, 38]] * 74), epsilon=1).save(release)
        programs = {
            "import numpy": (sys.executable, "-c", "import numpy"),
            "veilcube --help": (*COMMAND, "--help"),
            "veilcube query FILE WHERE": (*COMMAND, "query", str(release), "age >= 65 AND sex = 'Female'"),
            "veilcube plan SCHEMA": (*COMMAND, "plan", str(SCHEMA_FILE), "--epsilon", "1"),
        }
        seconds = {name: min(times) for name, times in _measured(programs).items()}
    numpy = seconds.pop("import numpy")
    print(f"import numpy: {numpy:.3f} s, best of {ROUNDS}")
    for name, found in seconds.items():
        verdict = "reached" if found <= BARS[name] * numpy else "MISSED"
        print(f"{name:<28}{found:>8.3f} s {found / numpy:>6.1f} times    bar {BARS[name]} {verdict}")


def _measured(programs: dict[str, tuple[str, ...]]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in programs}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for number in range(ROUNDS + 1):
        for name, words in programs.items():
            start = time.perf_counter()
            subprocess.run(words, stdout=subprocess.DEVNULL, check=True, env=environment)
            if number:  # nobody counts the run that compiles
                times[name].append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
