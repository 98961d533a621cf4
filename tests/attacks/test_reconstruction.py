"""Reconstruction of rows from answers, by linear programming and by differencing, against budgets that are used up.

Each row of the secret is one bit, and all answers together cost epsilon 1. Whatever an attacker computes, he then
guesses a bit right with probability e / (1 + e) at most, 73%; over so many bits the share may lie above that by what
chance explains in one of 10,000 runs (Hoeffding). The same attacks with a budget that hides nothing find every bit.
"""

from collections.abc import Callable, Iterator
from math import e, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import veilcube as vc
from veilcube.curator import ProtectedTable
from veilcube.errors import BudgetExceededError

PERSONS, QUESTIONS, TABLES = 48, 120, 3
SCHEMA = vc.Schema([vc.Ordinal("person", 1, PERSONS)])
CHANCE = 1e-4
Bits = NDArray[np.int64]


def most_right(bits: int) -> float:
    """Return the share of bits that epsilon 1 lets anybody guess, with what chance adds."""
    return e / (1 + e) + sqrt(log(1 / CHANCE) / (2 * bits))


def secrets() -> Iterator[Bits]:
    for seed in range(TABLES):
        yield np.random.default_rng(seed).integers(0, 2, PERSONS)


def reconstructed(asked: Bits, answers: NDArray[np.float64]) -> Bits:
    """Return the table whose answers differ least, in sum, from the noisy ones: a linear program."""
    questions = len(asked)
    cost = np.concatenate([np.zeros(PERSONS), np.ones(questions)])
    slack = np.eye(questions)
    above, below = np.hstack([asked, -slack]), np.hstack([-asked, -slack])
    bounds = [(0, 1)] * PERSONS + [(0, None)] * questions
    found = linprog(cost, np.vstack([above, below]), np.concatenate([answers, -answers]), bounds=bounds)
    return (found.x[:PERSONS] > 0.5).astype(np.int64)


def right(secret: Bits, guess: Bits) -> int:
    return int((secret == guess).sum())


def protected(secret: Bits, folder: Path, epsilon: float) -> ProtectedTable:
    ledger = vc.Ledger(folder / f"{len(list(folder.iterdir()))}.db")
    ledger.create("people", epsilon)
    return vc.protect(vc.Cube(SCHEMA, secret), ledger=ledger, dataset="people")


def by_questions(secret: Bits, folder: Path, epsilon: float) -> Bits:
    """Ask random sets of persons until the budget is gone, and reconstruct."""
    table = protected(secret, folder, epsilon)
    asked = np.random.default_rng(5).integers(0, 2, (QUESTIONS, PERSONS))
    answers = [
        table.where({"person": (np.flatnonzero(row) + 1).tolist()}).noisy_count(epsilon=f"{epsilon}/{QUESTIONS}")
        for row in asked
    ]
    with pytest.raises(BudgetExceededError):
        table.where("person <= 7").noisy_count(epsilon="1/1000000", fresh=True)
    return reconstructed(asked, np.array([answer.value for answer in answers]))


def by_release(secret: Bits, _: Path, epsilon: float) -> Bits:
    """Ask one release everything, and reconstruct."""
    release = vc.release(vc.Cube(SCHEMA, secret), epsilon=epsilon, strategy="tree")
    asked = np.random.default_rng(5).integers(0, 2, (QUESTIONS, PERSONS))
    answers = [release.count({"person": (np.flatnonzero(row) + 1).tolist()}).value for row in asked]
    return reconstructed(asked, np.array(answers))


def by_differencing(secret: Bits, folder: Path, epsilon: float) -> Bits:
    """Ask for the first persons, one more each time, and take differences: the budget is shared out evenly."""
    table = protected(secret, folder, epsilon)
    each = f"{epsilon}/{PERSONS}"
    upto = [table.where(person=(1, last + 1)).noisy_count(epsilon=each).value for last in range(PERSONS)]
    return (np.diff(np.array([0.0, *upto])) > 0.5).astype(np.int64)


def by_differencing_of_one(secret: Bits, folder: Path, epsilon: float) -> Bits:
    """Spend all on one person: everybody, and everybody but her."""
    guess = []
    for person in range(PERSONS):
        table = protected(secret, folder, epsilon)
        everybody = table.noisy_count(epsilon=f"{epsilon}/2").value
        others = [number + 1 for number in range(PERSONS) if number != person]
        rest = table.where({"person": others}).noisy_count(epsilon=f"{epsilon}/2").value
        guess.append(int(everybody - rest > 0.5))
    return np.array(guess)


Attack = Callable[[Bits, Path, float], Bits]
ATTACKS: dict[str, Attack] = {
    "linear programme on questions": by_questions,
    "linear programme on a release": by_release,
    "differencing of prefixes": by_differencing,
    "differencing of one": by_differencing_of_one,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_finds_no_more_bits_than_epsilon_allows(name: str, tmp_path: Path) -> None:
    found = sum(right(secret, ATTACKS[name](secret, tmp_path, 1)) for secret in secrets())
    assert found / (TABLES * PERSONS) <= most_right(TABLES * PERSONS)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_same_attack_finds_every_bit_where_the_budget_hides_nothing(name: str, tmp_path: Path) -> None:
    secret = next(secrets())
    assert right(secret, ATTACKS[name](secret, tmp_path, 20_000)) == PERSONS
