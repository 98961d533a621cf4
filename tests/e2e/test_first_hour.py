"""The newcomer's path: README's six commands, from an empty folder to a release of one's own with a chart.

The commands are those on the page, run as they stand, but for the two that install: the environment at hand has what
they would download, so a target folder takes what is built from the clone.
"""

import os
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import veilcube as vc

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^## Your first release, in six commands\n(.*?)^## ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS = 600  # the ten minutes that it may take, on a machine that other tests share
PROGRAM = "import veilcube; print(veilcube.__file__); from veilcube.cli import main; main(['--version'])"
INSTALLING = ("python3 -m venv ", "pip install ")


def blocks() -> list[tuple[str, str]]:
    section = SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert section is not None
    return BLOCK.findall(section[1])


COMMANDS = [line for language, body in blocks() if language in ("sh", "console") for line in body.splitlines()]


def write_visits(path: Path) -> None:
    """Write a table as a hospital has it: some patients come often, the old more than the young."""
    generator = random.Random(3)
    lines = ["patient_id,age,district,diagnosis"]
    for patient in range(3000):
        age, district = (
            min(99, max(0, round(generator.gauss(55, 20)))),
            generator.choice(["North", "South", "East", "West"]),
        )
        codes = generator.choices(["I10", "I21", "J18", "J45"], k=1 + int(generator.expovariate(60 / (20 + age))))
        lines += [f"{patient},{age},{district},{code}" for code in codes]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": found, "VEILCUBE_CACHE": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_the_path_has_six_commands() -> None:
    assert len(COMMANDS) == 6
    assert [command.startswith(INSTALLING) for command in COMMANDS] == [True, True, False, False, False, False]


def test_six_commands_lead_to_a_release_of_ones_own_with_a_chart(tmp_path: Path) -> None:
    write_visits(tmp_path / "visits.csv")
    (tmp_path / "visits.toml").write_text("".join(body for language, body in blocks() if language == "toml"))
    for command in COMMANDS:
        if not command.startswith(INSTALLING):
            done = run(command, tmp_path)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            assert done.stderr == ""
    release = vc.open(tmp_path / "visits.veil")
    assert release.privacy.unit.kind == "person"
    page = (tmp_path / "visits-report" / "report.html").read_text(encoding="utf-8")
    assert "vegaEmbed" in page
    assert all(name in page for name in release.schema.names)
    assert (tmp_path / "visits-report" / "report.png").read_bytes().startswith(b"\x89PNG")
    # The draft holds the columns that the finished schema names.
    drafted = tomllib.loads((tmp_path / "draft.toml").read_text(encoding="utf-8"))
    assert {one["name"] for one in drafted["attribute"]} == {*release.schema.names, "patient_id"}


def test_the_clone_can_be_installed(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
    ]
    done = subprocess.run(
        [*words, "--no-build-isolation", "--target", str(tmp_path / "site"), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert shown[0].startswith(str(tmp_path))
    assert shown[1].startswith("veilcube ")
