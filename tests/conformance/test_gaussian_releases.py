"""Releases with Gaussian noise of every strategy: what reads a release reads them as it reads Laplace noise."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.releases import gaussian_release_of
from veilcube.laws import DiscreteGaussian

LINE = vc.Schema([vc.Ordinal("position", 1, 256)])
TABLE = vc.Schema([vc.Ordinal("age", 1, 16), vc.Nominal("sex", ["F", "M"]), vc.Nominal("job", ["A", "B", "C"])])
PLANE = vc.Schema([vc.Ordinal("x", 1, 16), vc.Ordinal("y", 1, 16)])
STAGED = {"staged line": (LINE, vc.Tree(refine=True)), "staged plane": (PLANE, vc.Tree(refine=True))}
LINEAR = {
    "identity": (TABLE, vc.Identity()),
    "tree": (LINE, vc.Tree(refine=False)),
    "product of trees": (PLANE, vc.Tree(refine=False)),
    "wavelet": (TABLE, vc.Wavelet()),
    "marginals": (TABLE, vc.Marginals(k=2)),
    "matched": (TABLE, "matched"),
    "blocks": (PLANE, vc.Adaptive(partition="blocks", split=0.5, side=4)),
}
CHOSEN = {"grown regions": (PLANE, vc.Adaptive(partition="grow", split=0.7)), "kd boxes": (PLANE, vc.KdTree())}
WIDE = {"grouped tables": (TABLE, vc.GroupedTables())}
EVERY = {**LINEAR, **CHOSEN, **STAGED, **WIDE}


def counts_of(schema: vc.Schema) -> NDArray[np.int64]:
    """Return a table with a hill, an edge and empty cells."""
    grid = np.meshgrid(*(np.arange(size) / size for size in schema.shape), indexing="ij")
    hill = 40 * np.exp(-8 * sum((axis - 0.3) ** 2 for axis in grid))
    return np.random.default_rng(3).poisson(hill * (grid[0] < 0.7))


def questions(name: str, schema: vc.Schema) -> tuple[vc.Workload, NDArray[np.int64]]:
    """Return ranges, about two attributes at a time where only those were measured, and their exact counts."""
    asked = vc.Workload.random_ranges(schema, 60, seed=1)
    low, high = asked.low.copy(), asked.high.copy()
    if name == "marginals":
        low[:, 1], high[:, 1] = 0, schema.shape[1] - 1
    blocks = (tuple(slice(a, b + 1) for a, b in zip(*ends, strict=True)) for ends in zip(low, high, strict=True))
    counts = counts_of(schema)
    return vc.Workload.ranges(schema, low, high), np.array([counts[block].sum() for block in blocks])


@pytest.mark.parametrize("name", LINEAR)
def test_without_noise_least_squares_gives_the_counts_back(name: str) -> None:
    schema, strategy = LINEAR[name]
    asked, exact = questions(name, schema)
    release = gaussian_release_of(schema, counts_of(schema), "1/10", None, strategy)
    np.testing.assert_allclose(release.answer(asked, estimator="least_squares").value, exact, atol=1e-6)


@pytest.mark.parametrize("name", LINEAR)
def test_intervals_of_least_squares_hold_94_to_96_and_a_half_percent(name: str) -> None:
    schema, strategy = LINEAR[name]
    asked, exact = questions(name, schema)
    held = []
    for seed in range(80):
        answers = gaussian_release_of(schema, counts_of(schema), "1/50", seed, strategy).answer(
            asked, estimator="least_squares"
        )
        held.append(np.mean((answers.low <= exact) & (exact <= answers.high)))
    assert 0.94 - 0.01 <= np.mean(held) <= 0.965 + 0.005  # the errors of one release's answers go together


@pytest.mark.parametrize("name", EVERY)
def test_best_answers_and_guaranteed_intervals_hold_what_they_say(name: str) -> None:
    schema, strategy = EVERY[name]
    asked, exact = questions(name, schema)
    held: dict[str, list[float]] = {"calibrated": [], "guaranteed": []}
    for seed in range(10 if name in WIDE else 40):  # a model takes a second to fit
        release = gaussian_release_of(schema, counts_of(schema), "1/50", seed, strategy)
        for interval, found in held.items():
            answers = release.answer(asked, interval=interval)
            found.append(float(np.mean((answers.low <= exact) & (exact <= answers.high))))
    assert min(np.mean(found) for found in held.values()) >= 0.93


@pytest.mark.parametrize("name", EVERY)
def test_a_release_comes_back_from_its_file_with_its_noise_and_its_promise(name: str, tmp_path: Path) -> None:
    schema, strategy = EVERY[name]
    release = gaussian_release_of(schema, counts_of(schema), "1/10", 7, strategy)
    release.save(tmp_path / "kept.veil")
    again = vc.open(tmp_path / "kept.veil")
    assert again.privacy == release.privacy
    assert again.privacy.rho == pytest.approx(0.1)
    for one, other in zip(release.record.measurements, again.record.measurements, strict=True):
        assert isinstance(one.noise, DiscreteGaussian)
        assert one.noise == other.noise
        np.testing.assert_array_equal(one.values, other.values)
    asked, _ = questions(name, schema)
    for name_of_field in ("value", "low", "high"):
        np.testing.assert_array_equal(
            getattr(release.answer(asked), name_of_field), getattr(again.answer(asked), name_of_field)
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_models_learn_from_it_by_the_variance_of_its_noise(name: str) -> None:
    schema, strategy = EVERY[name]
    release = gaussian_release_of(schema, counts_of(schema), "1/50", 5, strategy)
    history = release.answered
    rows = np.concatenate([part.values.ravel() for part in release.record.measurements])
    assert len(history) == rows.size
    ratios = [np.full(part.values.size, part.noise.variance) for part in release.record.measurements]
    weights = np.sqrt(np.concatenate(ratios) / history.variances)
    np.testing.assert_allclose(history.values * weights, rows, atol=1e-6)
    asked, exact = questions(name, schema)
    held = []
    for seed in range(6):
        answers = (
            vc.KernelPCA().fit(gaussian_release_of(schema, counts_of(schema), "1/50", seed, strategy)).answer(asked)
        )
        held.append(np.mean((answers.low <= exact) & (exact <= answers.high)))
    assert np.mean(held) >= 0.9  # of few releases, whose answers err together


def test_check_finds_nothing_wrong_with_what_noise_explains() -> None:
    for name in ("identity", "tree", *CHOSEN, *STAGED):
        schema, strategy = EVERY[name]
        checked = gaussian_release_of(schema, counts_of(schema), "1/50", 2, strategy).check()
        assert all(finding.is_good for finding in checked.findings), (name, str(checked))
