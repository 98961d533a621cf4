"""Warnings on the command line: veilcube's own are one line, those of libraries, with their source paths, are none."""

import warnings
from pathlib import Path

import pytest

from support.command_line import caller, write_schema
from veilcube.cli import app

STRATEGIES = ["auto", "identity", "tree", "matched", "marginals", "adaptive", "wavelet"]
WORKLOADS = {"nobody": "age > 200", "a cell": "age = 30", "both": "age > 200\nage < 30", "gaps": "age IN (20, 30, 60)"}


CASES = [(name, asked) for name in STRATEGIES for asked in WORKLOADS]


@pytest.mark.parametrize(("strategy", "asked"), CASES)
@pytest.mark.parametrize("epsilon", ["0.000000001", "1", "1000000000"])
def test_plans_at_the_extremes_print_no_warnings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], strategy: str, asked: str, epsilon: str
) -> None:
    write_schema(tmp_path / "people.toml")
    (tmp_path / "asked.sql").write_text(WORKLOADS[asked], encoding="utf-8")
    words = ["plan", str(tmp_path / "people.toml"), "--workload", str(tmp_path / "asked.sql"), "--epsilon", epsilon]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is only hidden from users would end as something unexpected here
        done = caller(capfd)(*words, "--strategy", strategy)
    assert "unexpected" not in done.err
    assert done.err == "" if done.code == 0 else done.err.startswith("error: ")


def test_own_warnings_are_one_line_and_those_of_libraries_none(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def warn(*_: object) -> int:
        warnings.warn("the table\nis small", stacklevel=1)
        warnings.warn("overflow encountered in reduce", RuntimeWarning, stacklevel=1)
        warnings.warn("will be removed", FutureWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(app, "_run", warn)
    monkeypatch.delenv("VEILCUBE_DEBUG", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = caller(capfd)("plan")
    assert done.err == "warning: the table is small\n"
