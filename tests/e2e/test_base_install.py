"""With the packages of the base alone everything but the extras works, and a missing extra is one sentence.

The environment of tests has all extras; here their packages are kept from being imported, as if they were not there.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.command_line import write_people, write_schema

ROOT = Path(__file__).resolve().parents[2]
# What each extra installs, by the names that are imported.
EXTRAS = {
    "pandas": ["pandas"],
    "polars": ["polars"],
    "xarray": ["xarray"],
    "report": ["altair", "vl_convert"],
    "refine": ["clarabel"],
    "xlsx": ["xlsxwriter"],
    "postgres": ["psycopg"],
    "database": ["sqlalchemy"],
    "service": ["fastapi", "starlette", "uvicorn", "jinja2", "argon2", "httpx", "multipart", "python_multipart"],
}
BLOCKER = f"""
import sys
from importlib.abc import MetaPathFinder

class NotInstalled(MetaPathFinder):
    names = {{name for names in {EXTRAS!r}.values() for name in names}}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None

sys.meta_path.insert(0, NotInstalled())
"""
COMMANDS = [
    ["schema", "draft", "people.csv", "--out", "draft.toml"],
    ["schema", "check", "people.toml", "--against", "people.csv"],
    ["plan", "people.toml", "--epsilon", "1"],
    ["cap", "people.csv", "--schema", "people.toml", "--person", "patient", "--epsilon", "1"],
    ["ledger", "create", "budget.db", "people", "--epsilon", "2"],
    ["release", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--out", "people.veil",
     "--ledger", "budget.db", "--dataset", "people"],
    ["ledger", "history", "budget.db"],
    ["info", "people.veil"],
    ["query", "people.veil", "age >= 40", "--mean", "age", "--quantile", "age", "0.5"],
    ["query", "people.veil", "--group-by", "sex"],
    ["export", "people.veil", "--csv", "t.csv", "--parquet", "t.parquet"],
    ["refine", "people.veil", "--fact", "count(sex = 'Female') <= 400", "--out", "refined.veil"],
    ["synthesize", "people.veil", "--rows", "20", "--out", "rows.csv"],
    ["report", "people.veil", "--card", "--out", "card"],
    ["publish", "people.veil", "--out", "site"],
]  # fmt: skip
REFUSED = [
    (["report", "people.veil"], "report"),
    (["plan", "people.toml", "--epsilon", "1", "--plot", "plot.svg"], "report"),
    (["export", "people.veil", "--xlsx", "t.xlsx"], "xlsx"),
    (["serve", "folder"], "service"),
    (["release", "postgresql://h/d?table=t", "--schema", "people.toml", "--epsilon", "1", "--out", "p.veil"],
     "database"),
]  # fmt: skip
CALLS = """
import veilcube as vc
release = vc.open("people.veil")
assert release.count("age >= 40").value and release.marginal("sex")._repr_html_() and release.card()
calls = {
    "pandas": [release.to_pandas, release.marginal("sex").to_pandas, lambda: release.synthesize(5)],
    "xarray": [release.to_xarray],
    "xlsx": [lambda: release.export("t.xlsx")],
    "report": [lambda: release.report("folder")],
    "service": [lambda: vc.connect("http://127.0.0.1:1", key="vc_x")],
}
for extra, each in calls.items():
    for call in each:
        try:
            call()
        except vc.VeilcubeError as refusal:
            assert f"pip install 'veilcube[{extra}]'" in str(refusal) and "\\n" not in str(refusal), refusal
        else:
            raise AssertionError(f"{extra} is not missed")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("base")
    write_people(place / "people.csv")
    write_schema(place / "people.toml")
    return place


def run(program: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-c", BLOCKER + program]
    environment = os.environ | {"VEILCUBE_CACHE": ""}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def called(commands: object) -> str:
    """Return a program that runs commands in one process and prints what each ended with and said."""
    return f"""
import contextlib, io, json
from veilcube.cli import main
told = []
for words in {commands!r}:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    told.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""


def test_commands_work_without_any_extra(folder: Path) -> None:
    done = run(called(COMMANDS), folder)
    assert done.returncode == 0, done.stderr
    failed = {" ".join(words): told for words, told in zip(COMMANDS, json.loads(done.stdout), strict=True) if told[0]}
    assert failed == {}
    assert (folder / "rows.csv").read_text().count("\n") == 21
    refused = run(called([words for words, _ in REFUSED]), folder)
    assert refused.returncode == 0, refused.stderr
    for (words, extra), (code, _, said) in zip(REFUSED, json.loads(refused.stdout), strict=True):
        assert code != 0, words
        assert said.startswith("error: ")
        assert f"pip install 'veilcube[{extra}]'" in said
        assert said.count("\n") == 1
    python = run(CALLS, folder)
    assert python.returncode == 0, python.stderr


def test_every_extra_of_the_package_is_kept_out() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) - {"all", "dev"} == EXTRAS.keys()


def test_the_base_needs_what_the_decision_says() -> None:
    """A package more is a decision: docs/decisions/0002-dependencies.md has the sizes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text(encoding="utf-8")
    assert [line for line in project["dependencies"] if line.partition(">")[0] not in told] == []
