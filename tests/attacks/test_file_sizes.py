"""A file that is published depends on the table by its noisy values alone: not by size, dates, order or chunks.

Two unlike tables are given noise with which they publish the same values. Their files must be the same byte for byte,
but for the second in which they were made.
"""

import re
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veilcube as vc
from support.seeded import SeededWords
from veilcube.curator.mechanisms import linear, partition
from veilcube.curator.sampling import discrete_laplace
from veilcube.operators import RegionCounts

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 64), vc.Nominal("sex", ["Female", "Male"])])
FEW, MANY = np.zeros(SCHEMA.shape, dtype=np.int64), np.arange(128).reshape(SCHEMA.shape) ** 3
CREATED = re.compile(rb'"created":"[^"]*"')
STRATEGIES: dict[str, Any] = {
    "identity": vc.Identity(),
    "tree": vc.Tree(refine=False),
    "wavelet": vc.Wavelet(flat=()),
    "marginals": vc.Marginals(k=1),
    "blocks": vc.Adaptive(partition="blocks", split=0.5, side=4),
}


def saved(counts: np.ndarray, strategy: object, path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Release a table with the noise that the empty table would have been given, less what it holds."""
    source, steps = SeededWords(7), iter(range(9))

    def draw(scale: Fraction, shape: tuple[int, ...]) -> np.ndarray:
        drawn = discrete_laplace(scale, shape, source=source)
        if next(steps) == 0 and not isinstance(strategy, vc.Adaptive):
            return drawn - vc.plan(SCHEMA, 1, strategy).operator.apply(counts)
        exact = counts if drawn.shape == counts.shape else RegionCounts.of(blocks()).apply(counts)
        return drawn - exact.reshape(drawn.shape)

    for module in (linear, partition):
        monkeypatch.setattr(module, "SAMPLERS", {"laplace": draw})
    vc.release(vc.Cube(SCHEMA, counts), epsilon=1, strategy=strategy).save(path)
    with zipfile.ZipFile(path) as archive:
        inside = [(entry.filename, entry.compress_size, timeless(archive.read(entry))) for entry in archive.infolist()]
    return path.stat().st_size, inside


def timeless(content: bytes) -> bytes:
    """Return an entry without the second in which the release was made."""
    return CREATED.sub(b'"created":""', content)


def blocks() -> np.ndarray:
    design = STRATEGIES["blocks"].design(SCHEMA)
    return partition.Blocks(SCHEMA.shape, design.parts).labels


@pytest.mark.parametrize("name", STRATEGIES)
def test_tables_that_publish_the_same_values_are_saved_as_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = saved(FEW, STRATEGIES[name], tmp_path / "few.veil", monkeypatch)
    second = saved(MANY, STRATEGIES[name], tmp_path / "many.veil", monkeypatch)
    assert first == second


def test_other_noise_gives_other_bytes(tmp_path: Path) -> None:
    cube = vc.Cube(SCHEMA, FEW)
    for name in ("one", "other"):
        vc.release(cube, epsilon=1, strategy="identity").save(tmp_path / f"{name}.veil")
    assert (tmp_path / "one.veil").read_bytes() != (tmp_path / "other.veil").read_bytes()


def test_entries_of_a_file_carry_no_time_and_no_name_of_the_machine(tmp_path: Path) -> None:
    vc.release(vc.Cube(SCHEMA, MANY), epsilon=1, strategy="tree").save(tmp_path / "r.veil")
    with zipfile.ZipFile(tmp_path / "r.veil") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.comment for entry in archive.infolist()} | {archive.comment} == {b""}
        assert {entry.extra for entry in archive.infolist()} == {b""}
        names = [entry.filename for entry in archive.infolist()]
    vc.release(vc.Cube(SCHEMA, FEW), epsilon=1, strategy="tree").save(tmp_path / "s.veil")
    with zipfile.ZipFile(tmp_path / "s.veil") as archive:
        assert [entry.filename for entry in archive.infolist()] == names
