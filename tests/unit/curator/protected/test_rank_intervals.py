"""Intervals of ranks on small tables, what is refused before it is paid for, and stored ranks that are reused."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.protected import recorded_table
from veilcube.curator.mechanisms.protected.ranks import _with_public_rows
from veilcube.curator.protected.table import ProtectedTable
from veilcube.errors import PrivacyError, QueryError
from veilcube.privacy.rank_mechanisms import rank_distribution

SCHEMA = vc.Schema([vc.Ordinal("x", 0, 99), vc.Nominal("sex", ["F", "M"])])
AT = 5
TIMES = 200


def cube_of(rows: int, at: int = AT) -> vc.Cube:
    counts = np.zeros(SCHEMA.shape, dtype=np.int64)
    counts[at, 0] = rows
    return vc.Cube(SCHEMA, counts)


def table_of(folder: Path, rows: int, neighbours: str = "add-remove") -> ProtectedTable:
    ledger = f"sqlite:///{folder}/budget.db"
    return vc.protect(cube_of(rows), ledger=ledger, dataset="d", epsilon=10**6, neighbours=neighbours)


@pytest.mark.parametrize("rows", [1, 5, 20, 50])
def test_an_interval_holds_on_small_tables(rows: int) -> None:
    (table, _), (mirrored, _) = (recorded_table(cube_of(rows, at), "add-remove") for at in (AT, 99 - AT))
    rank = min(rows, 3)
    held = np.zeros(3)
    for _ in range(TIMES):
        largest = table.noisy_max("x", epsilon=1, interval="1/2", fresh=True)
        third = table.noisy_quantile("x", rank=rank, epsilon=1, interval="1/2", fresh=True)
        smallest = mirrored.noisy_min("x", epsilon=1, interval="1/2", fresh=True)
        held += [found.low <= AT <= found.high for found in (largest, third)] + [
            smallest.low <= 99 - AT <= smallest.high
        ]
    # At a chance of 0.95, more than 28 misses in 200 have a probability below 1e-6.
    assert (held >= TIMES - 28).all()


def test_public_rows_change_nothing_where_a_rank_is_reached_and_neighbours_stay_neighbours() -> None:
    rows = np.array([0, 2, 0, 1, 4, 0])
    assert _with_public_rows(rows, 7).tolist() == rows.tolist()
    for rank in (1, 5, 7, 8, 40):
        all_of_them = rows + rank * (np.arange(6) == 0)
        law = rank_distribution(_with_public_rows(rows, rank), 1, rank)
        assert law == pytest.approx(rank_distribution(all_of_them, 1, rank), abs=1e-12)
        for place in range(6):
            more = rows + (np.arange(6) == place)
            other = rank_distribution(_with_public_rows(more, rank), 1, rank)
            assert np.abs(np.log(law / other)).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.noisy_max("x", epsilon=1, interval="1/1000000000000000000"),
        lambda t: t.noisy_max("x", epsilon=1, interval=Fraction(1, 10**400)),
        lambda t: t.noisy_max("x", epsilon=1, interval=1 - Fraction(1, 10**30)),
        lambda t: t.noisy_min("x", epsilon=Fraction(1, 2**50), interval="1/2"),
        lambda t: t.noisy_quantile("x", rank=2**53, epsilon=1, interval=0.5),
        lambda t: t.noisy_quantile("x", rank=2**53 - 5, epsilon=1, interval=0.5),
        lambda t: t.noisy_max("x", epsilon=Fraction(1, 10**30)),
        lambda t: t.noisy_max("x", epsilon=Fraction(1, 10**400)),
    ],
)
def test_a_rank_that_cannot_be_drawn_is_refused_before_it_is_paid_for(
    tmp_path: Path, ask: Callable[[ProtectedTable], object]
) -> None:
    table = table_of(tmp_path, 5)
    with pytest.raises((QueryError, PrivacyError), match="use ") as refusal:
        ask(table)
    assert ". " not in str(refusal.value)
    assert table.budget.spent == 0


@pytest.mark.parametrize("method", ["permute-and-flip", "exponential", "tilted"])
def test_the_smallest_epsilon_that_is_accepted_can_be_drawn_with(tmp_path: Path, method: str) -> None:
    table = table_of(tmp_path, 5)
    price = Fraction(3, 3 * 2**53 - 1)
    assert 0 <= table.noisy_max("x", epsilon=price, method=method).value <= 99
    assert table.budget.spent == price


def test_a_draw_for_a_part_is_not_reused_where_epsilon_buys_more(tmp_path: Path) -> None:
    """Under replace a part divides epsilon by two, and the same rows outside of it do not."""
    table = table_of(tmp_path, 50, neighbours="replace")
    part = table.partition("sex")["F"].noisy_max("x", epsilon=1, method="permute-and-flip")
    spent = table.budget.spent
    same = table.where(sex="F").noisy_max("x", epsilon=1, method="permute-and-flip")
    assert table.budget.spent == spent + 1
    assert same.rows < part.rows
    assert table.partition("sex")["F"].noisy_max("x", epsilon=1, method="permute-and-flip") == part
    assert table.budget.spent == spent + 1
