"""Every command with odd words, odd files and no place to write to: an exit code and one line, never a traceback."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from support.command_line import caller, write_people, write_schema
from veilcube.cli import main
from veilcube.cli.app import app
from veilcube.curator.ledger import Ledger

FILES = (
    "people.toml", "people.csv", "budget.db", "r.veil", "noise", "empty", "folder", "ünï 😀.csv", "link", "loop",
    "latin.toml", "zeros.toml", "deep.toml", "torn.veil", "nowhere", "nowhere/x", "/", "/dev/null", "/dev/full", "",
    " ", "-", "~", "*.csv", "[", "x" * 300, "x" * 5000, "\udcff", "a\nb", "sqlite:///", "sqlite:///nowhere.db", "http://x",
    "/proc/self/mem", "people.csv/", "\x1b[31m",
)  # fmt: skip
WORDS = (
    "", "0", "1", "-1", "nan", "inf", "1e400", "1/3", "1/0", "abc", "age", "sex", "age > 30", "age > 1e4.0", "people",
    "auto", "tree", "magic", "add-remove", "9" * 20, "é", "\udcff", "'", "best", "TRUE", "total = 3", "age,sex", "NULL",
    "SELECT sex, COUNT(*) WHERE age > 200 GROUP BY sex",
)  # fmt: skip
USUAL = {
    "schema": "people.toml", "table": "people.csv", "ledger": "budget.db", "url": "budget.db", "epsilon": "1",
    "dataset": "people", "file": "r.veil", "release": "r.veil", "out": "out.veil",
}  # fmt: skip
# What takes long whatever it is given, or serves until it is stopped.
ENDLESS = {("demo",), ("serve",)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path / "people.csv", rows=60)
    write_schema(tmp_path / "people.toml")
    Ledger("budget.db").create("people", 1000)
    assert main(["release", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--out", "r.veil"]) == 0
    (tmp_path / "noise").write_bytes(os.urandom(5000))
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "ünï 😀.csv").write_text("age,sex\n30,Female\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'\n")
    (tmp_path / "zeros.toml").write_bytes(bytes(9))
    (tmp_path / "deep.toml").write_text(f"a = {'[' * 5000}{']' * 5000}", encoding="utf-8")
    (tmp_path / "torn.veil").write_bytes(b"PK\x03\x04" + os.urandom(300))
    return tmp_path


def _commands(group: object, names: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    if not hasattr(group, "list_commands"):
        return {names: group}
    inner = {name: group.get_command(None, name) for name in group.list_commands(None)}
    return {
        found: command for name, each in inner.items() for found, command in _commands(each, (*names, name)).items()
    }


def _words(names: tuple[str, ...], command: object, chance: random.Random) -> list[str]:
    words = list(names)
    for parameter in getattr(command, "params", []):
        is_argument = parameter.param_type_name == "argument"
        if not parameter.required and chance.random() < (0.4 if is_argument else 0.75):
            continue
        values = [
            USUAL[parameter.name]
            if parameter.name in USUAL and chance.random() < 0.5
            else chance.choice(chance.choice((FILES, WORDS)))
            for _ in range(max(1, parameter.nargs))
        ]
        if is_argument:
            words += values
        else:
            words += [parameter.opts[0]] if getattr(parameter, "is_flag", False) else [parameter.opts[0], *values]
    return words


@pytest.mark.parametrize("seed", range(2))
def test_no_words_and_no_files_make_a_command_fail_unexpectedly(
    seed: int, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call, chance, codes = caller(capfd), random.Random(seed), set()
    commands = {
        names: command for names, command in _commands(typer.main.get_command(app)).items() if names not in ENDLESS
    }
    for _ in range(8):
        for names, command in commands.items():
            words = _words(names, command, chance)
            done = call(*words)
            codes.add(done.code)
            assert "Traceback" not in done.err, words
            assert "something unexpected" not in done.err + done.out, words
            if done.code and "--json" not in words:
                assert done.err.startswith("error: "), words
                assert done.err.count("\n") == 1, words
            made = folder / "out.veil"
            shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
    assert codes >= {0, 2, 8}


def _run(words: str, cwd: Path) -> tuple[int, str]:
    """Run the command under a shell, which can close and redirect its streams."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -m veilcube.cli {words}'],
        cwd=cwd,
        stderr=subprocess.PIPE,
        text=True,
        timeout=800,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("query r.veil TRUE > /dev/full", 1, "error: the operating system refused: No space left on device"),
        ("query r.veil TRUE --json > /dev/full", 1, "error: the operating system refused: No space left on device"),
        ("query nowhere TRUE --json > /dev/full", 9, "error: "),
        ("query r.veil TRUE >&-", 0, ""),
        ("query nowhere TRUE --json >&- 2>&-", 9, ""),
        ("schema check /dev/full", 3, "error: cannot read the schema file /dev/full"),
    ],
)
def test_an_output_that_is_closed_or_full_is_no_traceback(folder: Path, words: str, code: int, said: str) -> None:
    done, told = _run(words, folder)
    assert done == code
    assert told.startswith(said)
    assert told.count("\n") == bool(said)
