"""Maxima, ranks, quantiles and distributive queries on protected tables: right, charged, stored, and refused."""

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from veilcube.curator.protected.desk import Desk
from veilcube.curator.protected.rows import PrivateRows
from veilcube.curator.protected.table import ProtectedTable
from veilcube.curator.sampling.rank import MOST_COINS, _Coins, draw_rank
from veilcube.errors import BudgetExceededError, PrivacyError, QueryError
from veilcube.privacy import Neighbours, PrivacyUnit
from veilcube.privacy.rank_mechanisms import RankCosts, RankMethod, rank_distribution

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 0, 49),
        vc.Nominal("sex", ["F", "M"]),
        vc.Ordinal("pay", edges=[0, 10, 20, 50]),
        vc.Ordinal("since", "2020-01", "2020-06", unit="month"),
    ]
)
COUNTS = np.random.default_rng(7).poisson(1.0, SCHEMA.shape)
COUNTS[:10] = COUNTS[40:] = 0
COUNTS[:, :, :, 5] = 0
SURE = 10_000
Make = Callable[..., ProtectedTable]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(neighbours: str = "add-remove", epsilon: int = 10**6, unit: PrivacyUnit | None = None) -> ProtectedTable:
        ledger = vc.Ledger(f"sqlite:///{tmp_path}/budget.db")
        ledger.create("people", epsilon=epsilon)
        hidden = PrivacyUnit.row() if unit is None else unit
        rows = PrivateRows(vc.Cube(SCHEMA, COUNTS, hidden), SCHEMA, hidden)
        return ProtectedTable.whole(Desk(rows, ledger, "people", Neighbours.read(neighbours)))

    return build


def test_with_enough_budget_extremes_and_ranks_are_exact(make: Make) -> None:
    table = make()
    ages = np.repeat(np.arange(50), COUNTS.sum(axis=(1, 2, 3)))
    assert table.noisy_max("age", epsilon=SURE).value == 39
    assert table.noisy_min("age", epsilon=SURE).value == 10
    assert table.noisy_quantile("age", rank=100, epsilon=SURE).value == np.sort(ages)[-100]
    assert table.noisy_quantile("age", 0.3, epsilon=SURE).value == np.sort(ages)[int(np.ceil(0.3 * ages.size)) - 1]
    assert table.where("age < 30").noisy_max("age", epsilon=SURE).value == 29


def test_bins_stand_as_their_middle_and_dates_as_their_first_day(make: Make) -> None:
    table = make()
    assert table.noisy_max("pay", epsilon=SURE).value == 35
    found = table.noisy_max("since", epsilon=SURE)
    assert (found.value, found.low, found.high) == (date(2020, 5, 1), date(2020, 1, 1), date(2020, 6, 30))
    assert found.to_dict()["value"] == "2020-05-01"


def test_an_interval_holds_the_true_value_and_costs_no_more(make: Make) -> None:
    table = make()
    true = np.sort(np.repeat(np.arange(50), COUNTS.sum(axis=(1, 2, 3))))[-600]
    held = []
    for _ in range(40):
        found = table.noisy_max("age", epsilon=2, interval="1/2", fresh=True)
        middle = table.noisy_quantile("age", rank=600, epsilon=2, interval="1/2", fresh=True)
        held.append(found.low <= 39 <= found.high and middle.low <= true <= middle.high)
        assert middle.high - middle.low < 20
    assert np.mean(held) >= 0.9
    assert table.budget.spent == 160


@pytest.mark.parametrize("method", ["auto", "split", "tree", "staged"])
def test_many_quantiles_cost_one_epsilon_and_ascend(make: Make, method: str) -> None:
    table = make()
    found = table.noisy_quantiles("age", [0.1, 0.5, 0.9], epsilon=5, method=method)
    ages = np.sort(np.repeat(np.arange(50), COUNTS.sum(axis=(1, 2, 3))))
    assert np.abs(found.value - ages[(np.array([0.1, 0.5, 0.9]) * ages.size).astype(int)]).max() <= 1
    assert (np.diff(found.value) >= 0).all()
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    assert found.rows.shape == (3,)
    assert table.budget.spent == 5


def test_a_question_asked_again_is_answered_from_the_ledger(make: Make) -> None:
    table = make()
    first = table.noisy_max("age", epsilon=0.1)
    assert table.noisy_max("age", epsilon=0.1) == first
    assert table.noisy_quantiles("age", [0.2, 0.8], epsilon=1).value.tolist() == (
        table.noisy_quantiles("age", [0.2, 0.8], epsilon="1/2").value.tolist()
    )
    assert table.budget.spent == Fraction(11, 10)
    table.noisy_max("age", epsilon=0.1, fresh=True)
    assert table.budget.spent == Fraction(12, 10)


def test_parts_are_charged_for_the_dearest_one(make: Make) -> None:
    table = make()
    parts = table.partition("sex")
    parts["F"].noisy_max("age", epsilon=1)
    parts["M"].noisy_max("age", epsilon=1)
    assert table.budget.spent == 1


@pytest.mark.parametrize(
    ("neighbours", "unit", "steps"),
    [
        ("add-remove", PrivacyUnit.row(), 1),
        ("replace", PrivacyUnit.row(), 1),
        ("add-remove", PrivacyUnit.person("id", 4), 4),
    ],
)
def test_each_row_of_a_unit_gets_its_part_of_epsilon(
    make: Make, neighbours: str, unit: PrivacyUnit, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[Fraction] = []
    monkeypatch.setattr(
        "veilcube.curator.mechanisms.protected.ranks.draw_rank",
        lambda _, epsilon, rank, method: spent.append(epsilon) or rank,
    )
    table = make(neighbours, unit=unit)
    table.noisy_max("age", epsilon=1)
    table.partition("sex")["F"].noisy_max("age", epsilon=1)
    crossing = 2 if neighbours == "replace" else 1
    assert spent == [Fraction(1, steps), Fraction(1, steps * crossing)]


def test_too_little_budget_refuses_and_draws_nothing(make: Make) -> None:
    table = make(epsilon=1)
    with pytest.raises(BudgetExceededError):
        table.noisy_quantiles("age", [0.5], epsilon=2)
    assert table.budget.spent == 0


def test_a_rank_beyond_a_public_number_of_rows_is_refused(make: Make) -> None:
    table = make("replace")
    with pytest.raises(QueryError, match="above the number of rows, which is public"):
        table.noisy_quantile("age", rank=int(COUNTS.sum()) + 1, epsilon=1)
    assert table.budget.spent == 0
    assert str(int(COUNTS.sum())) not in repr(table)


def test_a_hidden_number_of_rows_refuses_no_rank(make: Make) -> None:
    assert make().noisy_quantile("age", rank=10**9, epsilon=1).value >= 0


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda t: t.noisy_max("sex", epsilon=1), "has no order"),
        (lambda t: t.where(age=[]).noisy_max("age", epsilon=1), "empty|no value|no cell"),
        (lambda t: t.noisy_quantile("age", 1.5, epsilon=1), "quantiles must be"),
        (lambda t: t.noisy_quantile("age", rank=0, epsilon=1), "rank must be"),
        (lambda t: t.noisy_quantile("age", 0.5, rank=3, epsilon=1), "either a quantile"),
        (lambda t: t.noisy_quantile("age", 0.5, interval="1/2", epsilon=1), "go with a rank"),
        (lambda t: t.noisy_quantile("age", rank=3, method="tilted", epsilon=1), "finds a maximum"),
        (lambda t: t.noisy_max("age", epsilon=1, interval=1), "share of epsilon"),
        (lambda t: t.noisy_max("age", epsilon=1, confidence=2), "confidence"),
        (lambda t: t.noisy_quantiles("since", [0.5], epsilon=1), "holds dates"),
        (lambda t: t.noisy_quantiles("age", [0.5], epsilon=1, method="magic"), "use 'auto'"),
        (lambda t: t.distributive("count", "age", epsilon=1), "takes a veilcube.DistributiveQuery"),
        (lambda t: t.distributive(vc.DistributiveQuery.count(), "age", by=["sex", "sex"], epsilon=1), "named twice"),
        (lambda t: t.distributive(vc.DistributiveQuery.max(range(50)), "age", by=["age"], epsilon=1), "cut by other"),
        (lambda t: t.distributive(vc.DistributiveQuery.sum(0, 9), "sex", epsilon=1), "holds names"),
        (lambda t: t.distributive(vc.DistributiveQuery.max(range(9)), "since", epsilon=1), "holds dates"),
    ],
)
def test_bad_questions_are_refused_in_one_sentence_and_cost_nothing(
    make: Make, ask: Callable[[ProtectedTable], object], problem: str
) -> None:
    table = make()
    with pytest.raises(QueryError, match=problem) as refusal:
        ask(table)
    assert ". " not in str(refusal.value)
    assert table.budget.spent == 0


@pytest.mark.parametrize(
    ("ask", "unit"),
    [
        (lambda t: t.noisy_quantile("age", 0.5, epsilon="1e-18"), None),
        (lambda t: t.noisy_quantiles("age", [0.1, 0.5], epsilon="1e-17", method="split"), None),
        (lambda t: t.noisy_quantile("age", 0.5, epsilon="1e-9"), PrivacyUnit.person("who", 10**9)),
    ],
)
def test_an_epsilon_too_small_to_draw_quantiles_with_is_refused_before_it_is_paid(
    ask: Callable[[ProtectedTable], object], unit: PrivacyUnit | None, make: Make
) -> None:
    table = make(unit=unit)
    with pytest.raises(PrivacyError, match="too small"):
        ask(table)
    assert table.budget.spent == 0


@pytest.mark.parametrize("name", ["noisy_max", "noisy_min"])
def test_an_interval_may_be_as_sure_as_floats_allow(name: str, make: Make) -> None:
    asked = {"epsilon": 1, "interval": 0.5, "confidence": 1 - 2.0**-53}
    assert getattr(make(), name)("age", **asked).confidence == 1 - 2.0**-53


def test_distributive_queries_merge_noisy_parts_for_one_epsilon(make: Make) -> None:
    table = make()
    total = int(COUNTS.sum())
    found = table.distributive(vc.DistributiveQuery.count(), "age", by=["sex", "pay"], epsilon=SURE)
    assert found.value == total
    assert table.distributive(vc.DistributiveQuery.max(range(50)), "age", by=["sex"], epsilon=SURE).value == 39
    assert table.distributive(vc.DistributiveQuery.min(range(50)), "age", by=["sex"], epsilon=SURE).value == 10
    clipped = int((np.clip(np.arange(50), 0, 20) * COUNTS.sum(axis=(1, 2, 3))).sum())
    assert table.distributive(vc.DistributiveQuery.sum(0, 20), "age", by=["sex"], epsilon=10**5).value == clipped
    assert table.budget.spent == 3 * SURE + 10**5


def test_distributive_queries_take_bins_as_their_middles(make: Make) -> None:
    table, pays = make(), COUNTS.sum(axis=(0, 1, 3))
    found = table.distributive(vc.DistributiveQuery.sum(0, 50), "pay", by=["sex"], epsilon=10**5)
    assert found.value == pays @ [5, 15, 35]
    assert table.distributive(vc.DistributiveQuery.max(range(10**9)), "pay", epsilon=10**5).value == 35
    assert table.distributive(vc.DistributiveQuery.count(), "since", epsilon=10**5).value == COUNTS.sum()


def test_middles_that_are_not_whole_are_summed_exactly(tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal("size", edges=[0, 0.1, 0.5, 1])])
    cube = vc.Cube(schema, np.array([3, 5, 7]))
    table = vc.protect(cube, ledger=f"sqlite:///{tmp_path}/sizes.db", dataset="sizes", epsilon=10**7)
    found = table.distributive(vc.DistributiveQuery.sum(0, 1), "size", epsilon=10**6)
    assert found.value == pytest.approx(3 * 0.05 + 5 * 0.3 + 7 * 0.75)
    assert found.low == pytest.approx(found.high)
    # The noise is that of a sensitivity of 1, the upper bound, however the middles are counted.
    assert table.distributive(vc.DistributiveQuery.sum(0, 1), "size", epsilon=0.01).stddev == pytest.approx(
        np.sqrt(2) * 100, rel=0.01
    )
    assert table.distributive(vc.DistributiveQuery.max([0, 1]), "size", epsilon=10**6).value == 1
    assert table.distributive(vc.DistributiveQuery.count(), "size", epsilon=10**6).value == 15


def test_the_asked_attribute_may_cut_the_table(make: Make) -> None:
    table = make()
    for by in (["age"], ["age", "sex"], ["sex", "age"]):
        assert table.distributive(vc.DistributiveQuery.count(), "age", by=by, epsilon=SURE).value == COUNTS.sum()
    clipped = int((np.clip(np.arange(50), 0, 20) * COUNTS.sum(axis=(1, 2, 3))).sum())
    assert table.distributive(vc.DistributiveQuery.sum(0, 20), "age", by=["age"], epsilon=10**5).value == clipped


def test_a_merge_that_rises_with_its_parts_gets_the_merged_ends(make: Make) -> None:
    """Whether any row is there: a merge that does not add up, and has an interval by the ends of all parts."""
    query = vc.DistributiveQuery(lambda numbers, rows: int(rows.sum() > 0), max, 1)
    found = make().distributive(query, "age", by=["sex"], epsilon=1)
    assert found.low <= 1 <= found.high
    assert np.isfinite([found.low, found.high]).all()


# Large epsilons, whose coins have numerators beyond 64 bits

# A share of a third of a unit with a long denominator is rounded to a binary grid, with numerators from 2^63 on.
LONG = Fraction(1, 3 * 10**20)
LARGE = [Fraction(number) + rest for number in (255, 256, 300, 1000, 10**6) for rest in (0, Fraction(1, 7), LONG)]


@pytest.mark.parametrize("epsilon", LARGE, ids=lambda epsilon: f"{float(epsilon):g}-{epsilon.denominator}")
@pytest.mark.parametrize("method", list(RankMethod))
def test_every_table_can_be_drawn_from_at_a_large_epsilon(epsilon: Fraction, method: RankMethod) -> None:
    random = np.random.default_rng(5)
    tables = [random.integers(0, 2**power, 12) for power in (0, 1, 3, 20, 48)] + [np.zeros(12, int), np.ones(1, int)]
    tables += [np.eye(12, dtype=int)[place] * 2**52 for place in (0, 5, 11)]
    for counts in tables:
        law = rank_distribution(counts, epsilon, 1, method)
        assert law[draw_rank(counts, epsilon, 1, method)] > 1e-9


@pytest.mark.parametrize("seed", range(50))
def test_coins_hold_exactly_the_exponents(seed: int) -> None:
    random = np.random.default_rng(seed)
    rate = Fraction(int(random.integers(1, 2**62)) ** 2, int(2 ** random.uniform(0, 57))).limit_denominator(2**56)
    rate = rate if seed % 2 else Fraction(int(random.integers(1, 2**20)), int(random.integers(1, 2**20)))
    amounts = random.integers(0, 2 ** int(random.integers(1, 53)), 9)
    amounts[0] = 0
    for held in (amounts, amounts[:1]):
        coins = _Coins.of(RankCosts(held, rate))
        for amount, whole, rest in zip(held.tolist(), coins.wholes.tolist(), coins.remainders.tolist(), strict=True):
            exact = amount * rate
            assert whole == min(exact.numerator // exact.denominator, MOST_COINS)
            assert Fraction(rest, int(coins.denominator)) == exact - exact.numerator // exact.denominator


@pytest.mark.parametrize("epsilon", [256 + LONG, 1000 + LONG])
def test_a_large_epsilon_is_answered_whatever_the_table(epsilon: Fraction, tmp_path: Path) -> None:
    for number, counts in enumerate([*np.eye(10, dtype=int)[[0, 4, 9]].tolist(), [0] * 10, [7] * 10]):
        cube = vc.Cube(vc.Schema([vc.Ordinal("x", 0, 9)]), counts)
        table = vc.protect(cube, ledger=f"sqlite:///{tmp_path}/{number}.db", dataset="d", epsilon=10**7)
        table.noisy_max("x", epsilon=epsilon)
        table.noisy_quantile("x", 0.5, epsilon=epsilon)
        table.noisy_quantiles("x", [0.25, 0.5], epsilon=epsilon, method="split")
