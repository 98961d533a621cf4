"""The benchmark of past answers: its parts measure what they name."""

from pathlib import Path

import pytest
from benchmarks.scale.history import model, question, release


@pytest.mark.parametrize("name", ["kernel-pca", "max-entropy"])
def test_models_are_timed_on_few_and_on_many_cells(name: str) -> None:
    for size in ("10000", str(10**12)):
        found = model(name, "1", size, "40")
        assert found.seconds > 0
        assert 0 < found.gigabytes < 20


def test_a_question_to_a_release_is_timed(tmp_path: Path) -> None:
    path = str(tmp_path / "long.veil")
    release("wavelet", "5000", path)
    assert 0 < question(path).seconds < 5
