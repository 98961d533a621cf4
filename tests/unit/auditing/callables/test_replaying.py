"""Replay: everything but the noise must be the same, and the noisy values cost what they cost."""

import logging
import warnings
from typing import Any

import pytest

from veilcube.auditing.callables.domain import SmallTables
from veilcube.auditing.callables.replaying import check_replay
from veilcube.auditing.report import AuditFinding
from veilcube.privacy import Neighbours, Promise

TABLES = SmallTables.of(["a", "b"], 2, Neighbours.ADD_REMOVE)


def replayed(mechanism: object, promise: Promise | None = None) -> AuditFinding:
    return check_replay(mechanism, TABLES, promise or Promise.read(epsilon=1))


def test_what_noisy_values_cost_is_summed_up() -> None:
    def two(records: list[Any], noise: Any) -> object:
        return noise.add(len(records), scale=2), noise.add([records.count("a"), 0], scale=4)

    assert replayed(two).epsilon == pytest.approx(0.75)


def test_gaussian_noise_needs_a_delta_and_costs_rho() -> None:
    def gaussian(records: list[Any], noise: Any) -> object:
        return noise.add(len(records), variance=4)

    assert replayed(gaussian).passed is False
    assert replayed(gaussian, Promise.read(rho="1/8")).passed
    assert replayed(gaussian, Promise.read(rho="1/9")).passed is False
    assert replayed(gaussian, Promise.read(epsilon=4, delta=1e-6)).passed


def warned(records: list[Any], noise: Any) -> object:
    if len(records) > 1:
        warnings.warn("many", stacklevel=1)
    return noise.add(len(records), scale=1)


def logged(records: list[Any], noise: Any) -> object:
    logging.getLogger("mine").warning("counted %d", len(records))
    return noise.add(len(records), scale=1)


def other_scale(records: list[Any], noise: Any) -> object:
    return noise.add(len(records), scale=1 + len(records))


def more_noise(records: list[Any], noise: Any) -> object:
    return [noise.add(1, scale=1) for _ in records]


def declared(records: list[Any], noise: Any) -> object:
    return noise.add(2 * len(records), scale=2, sensitivity=1)


def coin(records: list[Any], noise: Any) -> object:
    return noise.coin(0.9 if records else 0.1)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (warned, "what is warned"),
        (logged, "what is logged"),
        (other_scale, "other noise"),
        (more_noise, "after the same outputs"),
        (declared, "changes by 2, and 1 is declared"),
        (coin, "largest loss is epsilon 2.197"),
    ],
)
def test_what_depends_on_the_table_is_told(mechanism: object, words: str) -> None:
    finding = replayed(mechanism)
    assert finding.passed is False
    assert words in finding.words
    assert finding.witness is not None


def test_noise_on_its_own_is_told_and_not_judged_by_what_follows_from_it() -> None:
    def own(records: list[Any], noise: Any) -> object:
        noisy = len(records) + noise.laplace(1)
        return noise.add(0, scale=1 + abs(noisy))

    finding = replayed(own)
    assert finding.passed
    assert "use noise.add" in finding.words
    assert finding.epsilon is None
