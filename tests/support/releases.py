"""Releases for tests: with seeded noise, or with none, so that answers can be compared with the truth."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from support.seeded import SeededWords
from veilcube.analyst import Release
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import StagedTreeMechanism, mechanism_for
from veilcube.curator.sampling import discrete_gaussian, discrete_laplace, joint_laplace, sharpened_laplace
from veilcube.planner import Plan, plan
from veilcube.record import ReleaseRecord
from veilcube.schema import Schema


def release_of(
    schema: Schema, counts: ArrayLike, epsilon: object = 1, seed: int | None = None, strategy: object = "identity"
) -> Release:
    """Return a release of given counts; without a seed there is no noise in it, whatever it declares."""
    return release_by_plan(Cube(schema, counts), plan(schema, epsilon, strategy), seed)


def gaussian_release_of(
    schema: Schema, counts: ArrayLike, rho: object = 1, seed: int | None = None, strategy: object = "identity"
) -> Release:
    """Return a release of given counts with Gaussian noise, whichever noise the planner would take for the promise."""
    chosen = replace(plan(schema, strategy=strategy, rho=rho), family="gaussian")
    return release_by_plan(Cube(schema, counts), chosen, seed)


def release_by_plan(cube: Cube, chosen: Plan, seed: int | None = None) -> Release:
    """Return a release of a cube by a plan that exists already."""
    mechanism = mechanism_for(chosen)
    claim = mechanism.claim(chosen)
    source = None if seed is None else SeededWords(seed)
    sample = discrete_gaussian if chosen.family == "gaussian" else discrete_laplace

    def draw(parameter: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return np.zeros(shape, dtype=np.int64) if source is None else sample(parameter, shape, source=source)

    def draw_jointly(scales: Sequence[Fraction], trees: int) -> NDArray[np.int64]:
        none = np.zeros((trees, 2 ** (len(scales) - 1)), dtype=np.int64)
        return none if source is None else joint_laplace(scales, trees, source=source)

    def sharpen(noise: NDArray[np.int64], scales: Sequence[Fraction], added: Fraction) -> NDArray[np.int64]:
        return noise if source is None else sharpened_laplace(noise, scales, added, source=source)

    if isinstance(mechanism, StagedTreeMechanism):
        mechanism = StagedTreeMechanism(draw_jointly, sharpen)
    measured = mechanism.measure(cube, chosen, Receipt.uncharged(claim), draw)
    return Release(ReleaseRecord(cube.schema, claim, measured, chosen.to_dict(), "2026-01-01T00:00:00+00:00", "test"))
