"""Short help, steps that tell nothing private, and completion that loads nothing it does not need."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import SCHEMA, caller, run_veilcube

WARNING_FREE = {"PYTHONWARNINGS": "error"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA)
    rows = ["age,sex", *("30,Male",) * 41, *("47,Female",) * 37]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "more.csv").write_text("\n".join([*rows, "59,Female"]) + "\n")
    return tmp_path


@pytest.mark.parametrize("words", [[], ["release"], ["ledger"], ["ledger", "show"]])
def test_the_short_option_shows_the_same_help(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    call = caller(capfd)
    short, long = call(*words, "-h"), call(*words, "--help")
    assert (short.code, short.out) == (0, long.out)
    assert "-h, --help" in short.out


RELEASE = ("release", "--schema", "people.toml", "--epsilon", "1", "--strategy", "identity")


@pytest.mark.parametrize("place", ["before", "after"])
def test_steps_are_told_on_the_error_stream_and_output_stays_as_it_was(
    folder: Path, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*RELEASE, "people.csv", "--out", "a.veil", "--json"]
    done = caller(capfd)(*(["--verbose", *words] if place == "before" else [*words, "--verbose"]))
    assert done.code == 0
    assert json.loads(done.out)["out"] == "a.veil"
    steps = done.err.splitlines()
    assert len(steps) >= 4
    assert all(step.startswith("step: ") for step in steps)
    assert "paid for" in done.err
    assert caller(capfd)(*words, "--force").err == "", "steps are told once only"


def test_steps_of_neighbouring_tables_are_the_same_to_the_last_letter(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call, told = caller(capfd), []
    for table in ("people.csv", "more.csv"):
        made = call(*RELEASE, table, "--out", "a.veil", "--force", "--verbose")
        asked = call("query", "a.veil", "age >= 40", "--verbose")
        told.append(made.err + asked.err)
    assert told[0] == told[1] != ""


def test_verbose_is_no_value_of_another_option(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = caller(capfd)("release", "people.csv", "--schema", "people.toml", "--out", "--verbose", "--epsilon", "1")
    assert (done.code, done.err) == (0, "")
    assert (folder / "--verbose").exists()


# Completion


def completed(line: str) -> list[str]:
    words = line.split(" ")
    asked = {"_VEILCUBE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = run_veilcube(cwd=Path.cwd(), env=asked | WARNING_FREE)
    assert (done.code, done.err) == (0, "")
    return done.out.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("veilcube le", ["ledger"]),
        ("veilcube ledger sh", ["show", "shares"]),
        ("veilcube release --sch", ["--schema"]),
        ("veilcube plan --neighbours rep", ["replace"]),
        ("veilcube nonsense --x", []),
    ],
)
def test_a_press_of_the_key_completes_commands_options_and_choices(line: str, found: list[str]) -> None:
    assert completed(line) == found


def test_completing_the_name_of_a_command_loads_none() -> None:
    heavy = ("numba", "duckdb", "pyarrow", "scipy.optimize", "veilcube.cli.commands.curator.release")
    loaded = f"[name for name in {heavy!r} if name in sys.modules]"
    program = f"import sys; from veilcube.cli import main; main([]); print({loaded})"
    asked = {"_VEILCUBE_COMPLETE": "complete_bash", "COMP_WORDS": "veilcube re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ | asked
    )
    assert done.stdout.split() == ["release", "refine", "report", "[]"]


@pytest.mark.parametrize("instruction", ["", "complete_", "complete_nu", "x", "source_bash", "complete_fish"])
def test_whatever_a_shell_asks_the_command_ends_without_a_word_of_error(instruction: str, tmp_path: Path) -> None:
    done = run_veilcube(cwd=tmp_path, env={"_VEILCUBE_COMPLETE": instruction})
    assert done.code in (0, 1)
    assert done.err == ""


def test_bash_completes_with_the_lines_that_are_shown_and_installed(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not on this machine")
    home = {"HOME": str(tmp_path)}
    shown = run_veilcube("--show-completion", "bash", cwd=tmp_path, env=home)
    installed = run_veilcube("--install-completion", "bash", cwd=tmp_path, env=home)
    (file,) = tmp_path.glob(".bash_completions/*")
    assert installed.out.startswith(f"Wrote {file}. Completion works in bash")
    assert file.read_text().strip() == shown.out.strip()
    script = f"source {file}\nCOMP_WORDS=(veilcube syn) COMP_CWORD=1\n_veilcube_completion {sys.executable}-veilcube\n"
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m veilcube.cli "$@"\n')
    wrapper.chmod(0o755)
    script = script.replace(f"{sys.executable}-veilcube", str(wrapper))
    done = subprocess.run([bash, "-c", f'{script}echo "${{COMPREPLY[@]}}"'], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["synthesize"]


def test_a_home_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".bash_completions").write_text("in the way")
    done = run_veilcube("--install-completion", "bash", cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert done.code != 0
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
