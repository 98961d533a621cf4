"""Plans of many quantiles: budgets of levels, expected misses against simulation, and the choice between three ways."""

from fractions import Fraction

import pytest

from veilcube.errors import PlanError, QueryError
from veilcube.planner import plan
from veilcube.planner.quantiles import (
    MOST_CELLS_OF_A_TREE,
    MOST_ROWS_IN_NOISE,
    QuantileChoice,
    QuantileMethod,
    plan_by_total,
    plan_quantiles,
)
from veilcube.privacy import epsilon_of
from veilcube.schema import Ordinal, Schema

NINE = [i / 10 for i in range(1, 10)]
PERCENTILES = [i / 100 for i in range(1, 100)]


@pytest.mark.parametrize("quantiles", [[0.5], [0.1, 0.9], NINE])
def test_the_budgets_of_the_levels_add_up_to_epsilon(quantiles: list[float]) -> None:
    plan = plan_quantiles(1000, quantiles, "1/3")
    assert sum(plan.budgets) == Fraction(1, 3)
    assert len(plan.budgets) == plan.split.levels
    assert sum(plan_quantiles(1000, quantiles, "1/3", steps=4).budgets) == Fraction(1, 12)


def test_few_quantiles_are_split_and_many_on_few_cells_read_from_a_tree() -> None:
    assert plan_quantiles(100, [0.5], 1).method is QuantileMethod.SPLIT
    assert plan_quantiles(100, PERCENTILES, 1).method is QuantileMethod.TREE
    assert plan_quantiles(10**6, PERCENTILES, 1).method is QuantileMethod.SPLIT
    chosen = plan_quantiles(100, PERCENTILES, 1)
    assert chosen.expected_miss == min(chosen.expected_misses.values())


def test_the_choice_does_not_depend_on_epsilon() -> None:
    small, large = (plan_quantiles(500, NINE, epsilon) for epsilon in (0.01, 1))
    assert small.method is large.method
    assert small.expected_miss == pytest.approx(100 * large.expected_miss, rel=0.01)


def test_one_cell_needs_no_tree() -> None:
    assert plan_quantiles(1, [0.5], 1, method="tree").method is QuantileMethod.SPLIT


def test_bad_wishes_are_refused() -> None:
    with pytest.raises(QueryError, match="use 'auto', 'split', 'tree' or 'staged'"):
        plan_quantiles(10, [0.5], 1, method="guess")
    with pytest.raises(PlanError, match="use method='split'"):
        plan_quantiles(2**18 + 1, [0.5], 1, method="staged")
    with pytest.raises(PlanError, match="use method='split'"):
        plan_quantiles(MOST_CELLS_OF_A_TREE + 1, [0.5], 1, method="tree")


@pytest.mark.parametrize("steps", [1, 4])
def test_a_staged_tree_is_planned_where_noise_hides_the_cells(steps: int) -> None:
    border = MOST_ROWS_IN_NOISE * 1000 * steps * 10
    few, many = (plan_quantiles(1000, PERCENTILES, "1/10", steps=steps, rows=border + more) for more in (0, 1))
    assert few.method is QuantileMethod.STAGED
    assert few.expected_miss == min(few.expected_misses.values())
    assert many.method is QuantileMethod.TREE
    assert few.staged is not None
    assert few.staged.epsilon == Fraction(1, 10 * steps)


@pytest.mark.parametrize(("cells", "quantiles"), [(1000, [0.5]), (63, PERCENTILES), (2**14 + 1, PERCENTILES)])
def test_no_budget_goes_to_a_number_of_rows_that_cannot_matter(cells: int, quantiles: list[float]) -> None:
    plan = plan_by_total(cells, quantiles, 1)
    assert not isinstance(plan, QuantileChoice)
    assert plan.epsilon == 1
    assert plan.method == plan_quantiles(cells, quantiles, 1).method


@pytest.mark.parametrize("steps", [1, 3])
def test_a_choice_by_the_total_spends_epsilon_once_whatever_is_chosen(steps: int) -> None:
    choice = plan_by_total(256, PERCENTILES, "1/3", steps=steps)
    assert isinstance(choice, QuantileChoice)
    for way in (choice.few, choice.many):
        assert steps / choice.total_scale + way.epsilon == choice.epsilon == Fraction(1, 3)
    assert choice.way_for(int(choice.border)).method is QuantileMethod.STAGED
    assert choice.way_for(int(choice.border) + 1).method is QuantileMethod.TREE
    assert choice.way_for(-5).method is QuantileMethod.STAGED


def test_the_noise_on_the_total_is_small_beside_the_border() -> None:
    choice = plan_by_total(64, PERCENTILES, 1)
    assert isinstance(choice, QuantileChoice)
    assert choice.total_scale < choice.border / 30


def never_asked(scale: Fraction) -> int:
    pytest.fail("a number of rows was asked for")


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("method", list(QuantileMethod))
def test_a_single_way_is_carried_out_without_asking_for_rows_and_its_event_costs_epsilon(
    method: QuantileMethod, steps: int
) -> None:
    plan = plan_quantiles(256, NINE, "1/3", method=method, steps=steps)
    assert plan.plan_for(never_asked) is plan
    assert (plan.plans, plan.name, plan.is_split) == ((plan,), method.value, method is QuantileMethod.SPLIT)
    assert epsilon_of(plan.event(steps)) == Fraction(1, 3)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_choice_asks_once_for_rows_with_its_own_noise_and_its_event_costs_epsilon(steps: int) -> None:
    choice = plan_by_total(256, PERCENTILES, "1/3", steps=steps)
    for rows in (int(choice.border), int(choice.border) + 1):
        asked: list[Fraction] = []
        taken = choice.plan_for(lambda scale, asked=asked, rows=rows: asked.append(scale) or rows)
        assert asked == [choice.total_scale]
        assert taken is choice.way_for(rows)
    assert (choice.plans, choice.name, choice.is_split) == ((choice.few, choice.many), "by total", False)
    assert epsilon_of(choice.event(steps)) == Fraction(1, 3)


def test_the_earlier_word_for_a_staged_tree_is_still_understood() -> None:
    assert plan_quantiles(100, [0.5], 1, method="refined").method is QuantileMethod.STAGED
    schema = Schema([Ordinal("age", 1, 100)])
    assert plan(schema, 1, "refined tree").strategy == plan(schema, 1, "staged tree").strategy
