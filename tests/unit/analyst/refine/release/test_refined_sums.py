"""Sums of a refined release: cut to what inequalities leave, whatever table obeys them."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

import veilcube as vc
from support.releases import release_of

SCHEMA = vc.Schema([vc.Ordinal("hours", -3, 8), vc.Nominal("sex", ["F", "M"])])
HOURS = np.arange(-3, 9)
COUNTS = np.random.default_rng(0).poisson(20, SCHEMA.shape)
FACTS = ["total <= 500", "count(hours >= 5) <= 80", "count(hours < 0 AND sex = 'F') >= 40", "count(sex = 'M') = 230"]
WEIGHTS = np.zeros((4, *SCHEMA.shape))
WEIGHTS[0], WEIGHTS[1, 8:], WEIGHTS[2, :3, 0], WEIGHTS[3, :, 1] = 1, 1, -1, 1


@pytest.mark.parametrize("where", [None, "sex = 'F'", "hours IN (-3, 2, 8)", "hours > 3 OR sex = 'M'", "hours < -3"])
def test_ranges_of_sums_are_those_of_a_program_over_all_cells(where: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refined = vc.refine(release_of(SCHEMA, COUNTS, epsilon=0.001, seed=3), FACTS)
    inside = np.ones(SCHEMA.shape, dtype=bool)
    if where is not None:
        cells = np.array(
            [
                [refined.unrefined.count(f"({where}) AND hours = {h} AND sex = '{s}'").stddev for s in "FM"]
                for h in HOURS
            ]
        )
        inside = cells > 0
    objective = (HOURS[:, None] * inside).ravel()
    facts = {
        "A_ub": WEIGHTS[:3].reshape(3, -1),
        "b_ub": [500, 80, -40],
        "A_eq": WEIGHTS[3:].reshape(1, -1),
        "b_eq": [230],
    }
    least, greatest = linprog(objective, **facts).fun, -linprog(-objective, **facts).fun
    answer = refined.sum("hours", where=where)
    # Noise of scale 1,000 leaves intervals that reach beyond all that is possible.
    assert (answer.low, answer.high) == (pytest.approx(least), pytest.approx(greatest))
    assert least - 1e-6 <= answer.value <= greatest + 1e-6


def test_sums_without_inequalities_stay_as_they_are() -> None:
    release = release_of(SCHEMA, COUNTS, epsilon=0.001, seed=3)
    refined = vc.refine(release, f"total = {COUNTS.sum()}", counts=False)
    answer = refined.sum("hours")
    assert answer.high - answer.low > 1000


def test_bins_reach_to_their_ends() -> None:
    schema = vc.Schema([vc.Ordinal("income", edges=[0, 10, 50])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refined = vc.refine(release_of(schema, np.array([20, 20]), epsilon=0.001, seed=3), "total <= 40")
    assert refined.sum("income").high == pytest.approx(40 * 50)
    assert refined.sum("income").low == 0


def test_cut_sums_hold_as_often_as_they_say() -> None:
    truth, held, widths = float((HOURS[:, None] * COUNTS).sum()), [], []
    facts = [
        f"total <= {COUNTS.sum()}",
        f"count(hours >= 0) >= {COUNTS[3:].sum()}",
        f"count(hours > 5) <= {COUNTS[9:].sum()}",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(150):
            release = release_of(SCHEMA, COUNTS, epsilon=0.05, seed=seed)
            answer = vc.refine(release, facts).sum("hours")
            held.append(answer.low - 1e-6 <= truth <= answer.high + 1e-6)
            before = release.sum("hours")
            widths.append((answer.high - answer.low) / (before.high - before.low))
    assert np.mean(held) >= 0.93
    assert np.mean(widths) < 1
