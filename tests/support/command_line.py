"""The real command in a process of its own, and small tables for it."""

import csv
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from veilcube.cli import main

SCHEMA = """
[[attribute]]
name = "age"
kind = "ordinal"
low = 20
high = 60

[[attribute]]
name = "sex"
kind = "nominal"
values = ["Female", "Male"]
"""


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str


def run_veilcube(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Finished:
    done = subprocess.run(
        [sys.executable, "-m", "veilcube.cli", *words],
        cwd=cwd,
        env=os.environ | dict(env or {}),
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


Call: TypeAlias = Callable[..., Finished]


def caller(capfd: pytest.CaptureFixture[str]) -> Call:
    """Return a call of the command's own ``main``, which costs no new process."""

    def call(*words: str) -> Finished:
        capfd.readouterr()
        code = main(list(words))
        return Finished(code, *capfd.readouterr())

    return call


def write_people(path: Path, rows: int = 500, extra: tuple[str, str] | None = None) -> Path:
    """Write a CSV of ages from 20 to 60, sexes and patients with three rows each; ``extra`` is one more row."""
    generator = random.Random(7)
    people = [(generator.randint(20, 60), generator.choice(["Female", "Male"]), row // 3) for row in range(rows)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "sex", "patient"])
        writer.writerows(people)
        if extra is not None:
            writer.writerow([*extra, "last"])
    return path


def write_schema(path: Path, text: str = SCHEMA) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
