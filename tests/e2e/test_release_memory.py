"""What cannot be carried out is not charged: releases in a process whose memory is limited, tighter and tighter."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "limited_release.py"
# Beside what the process holds already; the tightest leaves no room for anything.
MEGABYTES = (20, 100, 300, 360, 420, 500, 600, 700, 800, 1000, 1400, 3000)


def outcomes(folder: Path, shape: str, strategy: str) -> list[str]:
    command = [sys.executable, str(SCRIPT), str(folder), shape, strategy, *map(str, MEGABYTES)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=800).stdout.splitlines()


@pytest.mark.parametrize(
    ("shape", "strategy"),
    [
        ("(2**21,)", "'identity'"),
        ("(2**10, 2**11)", "vc.Tree(refine=False)"),
        pytest.param("(2**21,)", "vc.Tree(refine=False)", marks=pytest.mark.slow),
        pytest.param("(2**5, 2**8, 2**8)", "vc.Tree(refine=False, branching=2)", marks=pytest.mark.slow),
        pytest.param("(2**10, 2**11)", "vc.Wavelet(flat=[])", marks=pytest.mark.slow),
        pytest.param("(2**10, 2**11)", "vc.Adaptive(partition='blocks')", marks=pytest.mark.slow),
        pytest.param("(2**10, 2**11)", "vc.Adaptive(partition='grow')", marks=pytest.mark.slow),
        pytest.param("(2**10, 2**11)", "vc.Adaptive(partition='kd')", marks=pytest.mark.slow),
        pytest.param("(2**6, 2**7, 2**8)", "'matched'", marks=pytest.mark.slow),
        pytest.param("(2**18,)", "vc.Tree()", marks=pytest.mark.slow),
        pytest.param("(2**6, 2**7, 2**8)", "vc.Marginals(k=2)", marks=pytest.mark.slow),
    ],
)
def test_a_release_that_memory_does_not_allow_is_refused_and_not_charged(
    tmp_path: Path, shape: str, strategy: str
) -> None:
    found = outcomes(tmp_path, shape, strategy)
    assert set(found) == {"refused 0", "made 1"}
    assert found == sorted(found, reverse=True), "what fits into less must fit into more"
