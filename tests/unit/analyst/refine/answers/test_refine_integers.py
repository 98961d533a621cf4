"""Whole answers: the nearest ones, against all whole points around, and as many as are promised."""

from itertools import product

import numpy as np
import pytest

import veilcube as vc
from veilcube.analyst.refine.answers.integers import nearest_integers
from veilcube.analyst.refine.facts.facts import read_facts


@pytest.mark.parametrize("seed", range(12))
def test_no_whole_numbers_around_are_nearer(seed: int) -> None:
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 6, 4)
    value, deviations = truth + generator.normal(0, 1, 4), generator.uniform(0.5, 2, 4)
    facts = read_facts(
        ("a", "b", "c", "d"), [f"a + b + c = {truth[:3].sum()}", f"2*c + d <= {2 * truth[2] + truth[3]}"], None, None
    )
    found = nearest_integers(value, deviations, facts)
    around = np.array(list(product(*(range(int(middle) - 8, int(middle) + 9) for middle in np.floor(value)))))
    obeys = (around[:, :3].sum(axis=1) == truth[:3].sum()) & (around[:, 2] * 2 + around[:, 3] <= facts.constants[1])
    least = (np.abs(around[obeys] - value) / deviations).sum(axis=1).min()
    assert (np.abs(found - value) / deviations).sum() == pytest.approx(least)
    assert found[:3].sum() == truth[:3].sum()
    assert 2 * found[2] + found[3] <= facts.constants[1]


@pytest.mark.parametrize("many", [30, 60, 1_000])
def test_as_many_answers_as_promised_are_made_whole(many: int) -> None:
    generator = np.random.default_rng(many)
    truth = generator.poisson(50, many)
    names = [f"q{row + 1}" for row in range(many)]
    half = " + ".join(names[: many // 2])
    facts = [f"{' + '.join(names)} = {truth.sum()}", f"{half} <= {truth[: many // 2].sum()}"]
    refined = vc.refine(truth + generator.laplace(0, 5, many), facts, covariance=50.0, integers=True)
    assert (refined.value == np.rint(refined.value)).all()
    assert refined.value.sum() == truth.sum()
    assert refined.value[: many // 2].sum() <= truth[: many // 2].sum()


def test_a_table_with_known_margins_is_made_whole() -> None:
    generator, side = np.random.default_rng(3), 25
    truth = generator.poisson(20, (side, side))
    cells = np.indices((side, side)).reshape(2, -1)
    margins = np.concatenate([cells[0] == np.arange(side)[:, None], cells[1] == np.arange(side)[:, None]]).T.astype(
        float
    )
    noisy = truth.ravel() + generator.laplace(0, 5, side**2)
    refined = vc.refine(noisy, B=margins, c=margins.T @ truth.ravel(), covariance=50.0, integers=True)
    assert (refined.value == np.rint(refined.value)).all()
    assert margins.T @ refined.value == pytest.approx(margins.T @ truth.ravel())
