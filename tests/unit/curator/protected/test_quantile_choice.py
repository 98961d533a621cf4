"""Quantiles whose way a noisy number of rows chooses: what is drawn is what was charged, stored and promised."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from veilcube.curator.mechanisms import Samplers
from veilcube.curator.mechanisms.protected.quantiles import PROOFS
from veilcube.curator.protected.desk import Desk, Offer
from veilcube.curator.protected.extremes import Ladder
from veilcube.curator.protected.quantiles import ask_quantiles
from veilcube.curator.protected.rows import PrivateRows
from veilcube.curator.protected.table import ProtectedTable, private_view
from veilcube.curator.sampling import discrete_laplace
from veilcube.errors import QueryError
from veilcube.planner.quantiles import SHARE_OF_TOTAL
from veilcube.privacy import Neighbours, PrivacyStatement, PrivacyUnit
from veilcube.privacy.accountant import epsilon_of
from veilcube.privacy.event import noise_events

PERCENTILES = [i / 100 for i in range(1, 100)]
CELLS = 100
SCHEMA = vc.Schema([vc.Ordinal("pay", 1, CELLS), vc.Nominal("sex", ["F", "M"])])
FEW, MANY = 10, 5000  # rows a cell: far below and far above 120 at epsilon 1, and 1,440 for six steps at epsilon 1/2
Make = Callable[..., ProtectedTable]


class Recorder:
    """Draws noise and remembers the scale and the size of every draw."""

    def __init__(self) -> None:
        self.drawn: list[tuple[Fraction, tuple[int, ...]]] = []

    def __call__(self, scale: Fraction, shape: tuple[int, ...]) -> np.ndarray:
        self.drawn.append((scale, shape))
        return discrete_laplace(scale, shape)

    @property
    def scales(self) -> set[Fraction]:
        return {scale for scale, _ in self.drawn}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def make(tmp_path: Path, recorder: Recorder) -> Make:
    def build(each: int, neighbours: str = "add-remove", unit: PrivacyUnit | None = None) -> ProtectedTable:
        ledger = vc.Ledger(f"sqlite:///{tmp_path}/budget.db")
        ledger.create("people", epsilon=100)
        hidden = PrivacyUnit.row() if unit is None else unit
        counts = np.full(SCHEMA.shape, each // 2)
        rows = PrivateRows(vc.Cube(SCHEMA, counts, hidden), SCHEMA, hidden)
        return ProtectedTable.whole(
            Desk(rows, ledger, "people", Neighbours.read(neighbours), samplers=Samplers(recorder))
        )

    return build


def only_statement(table: ProtectedTable) -> PrivacyStatement:
    (answer,) = private_view(table).desk.ledger.history("people").answers
    return answer.statement


@pytest.mark.parametrize(("each", "is_refined"), [(FEW, True), (MANY, False)])
def test_the_noisy_total_is_drawn_first_and_chooses_the_way(
    make: Make, recorder: Recorder, each: int, is_refined: bool
) -> None:
    table = make(each)
    found = table.noisy_quantiles("pay", PERCENTILES, epsilon=1)
    assert recorder.drawn[0] == (1 / SHARE_OF_TOTAL, (1,))
    # A plain tree is measured at once, a refined one level by level.
    assert (len(recorder.drawn) > 2) is is_refined
    assert np.abs(found.value - np.arange(1, 100)).max() < 30
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    assert (found.rows > 0).all()
    assert table.budget.spent == 1


@pytest.mark.parametrize("each", [FEW, MANY])
@pytest.mark.parametrize(
    ("neighbours", "unit", "steps"),
    [
        ("add-remove", PrivacyUnit.row(), 1),
        ("replace", PrivacyUnit.row(), 2),
        ("replace", PrivacyUnit.person("id", 3), 6),
    ],
)
def test_all_noise_that_is_drawn_stands_in_the_event_that_was_charged(
    make: Make, recorder: Recorder, each: int, neighbours: str, unit: PrivacyUnit, steps: int
) -> None:
    table = make(each, neighbours, unit)
    table.noisy_quantiles("pay", PERCENTILES, epsilon="1/2")
    statement = only_statement(table)
    promised = {event.scale for event in noise_events(statement.event)}
    assert recorder.scales <= promised
    assert steps * 2 / SHARE_OF_TOTAL in recorder.scales
    assert epsilon_of(statement.event) <= Fraction(1, 2)
    assert epsilon_of(statement.event) > Fraction(499, 1000)
    assert statement.proof == PROOFS["by total"]


def test_the_event_of_a_choice_is_read_back_as_it_was(make: Make) -> None:
    table = make(FEW)
    table.noisy_quantiles("pay", PERCENTILES, epsilon=1)
    statement = only_statement(table)
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement


def test_a_choice_is_answered_from_the_ledger_when_it_is_asked_again(make: Make, recorder: Recorder) -> None:
    table = make(FEW)
    first = table.noisy_quantiles("pay", PERCENTILES, epsilon=1)
    draws = len(recorder.drawn)
    again = table.noisy_quantiles("pay", PERCENTILES, epsilon="1/3")
    for name in ("value", "low", "high", "rows"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert (len(recorder.drawn), table.budget.spent) == (draws, 1)
    table.noisy_quantiles("pay", PERCENTILES, epsilon=1, confidence=0.5)
    assert table.budget.spent == 2


@pytest.mark.parametrize(("rows", "draws_at_once"), [(1000, False), (10**6, True)])
def test_a_public_number_of_rows_saves_the_budget_for_it(
    make: Make, recorder: Recorder, rows: int, draws_at_once: bool
) -> None:
    table = make(FEW)
    ask_quantiles(private_view(table), "pay", PERCENTILES, Offer(1), "auto", 0.95, False, rows=rows)
    assert (len(recorder.drawn) == 1) is draws_at_once
    assert 1 / SHARE_OF_TOTAL not in recorder.scales
    assert only_statement(table).proof != PROOFS["by total"]
    assert epsilon_of(only_statement(table).event) > Fraction(999, 1000)


@pytest.mark.parametrize("rows", [-1, 1.5, True, 2**60])
def test_a_number_of_rows_that_is_none_is_refused_and_costs_nothing(make: Make, rows: object) -> None:
    table = make(FEW)
    with pytest.raises(QueryError, match="leave it out if it is not public"):
        ask_quantiles(private_view(table), "pay", PERCENTILES, Offer(1), "auto", 0.95, False, rows=rows)  # type: ignore[arg-type]
    assert table.budget.spent == 0


def test_parts_are_charged_for_the_dearest_one(make: Make) -> None:
    table = make(FEW)
    parts = table.partition("sex")
    for name in ("F", "M"):
        parts[name].noisy_quantiles("pay", PERCENTILES, epsilon=1)
    assert table.budget.spent == 1


def test_an_empty_table_still_gets_answers(make: Make) -> None:
    found = make(0).noisy_quantiles("pay", PERCENTILES, epsilon=1)
    assert (np.diff(found.value) >= 0).all()


def test_an_answer_that_an_older_ledger_calls_refined_is_free(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table, question = make(FEW), Ladder.question
    with monkeypatch.context() as before:
        before.setattr(Ladder, "question", lambda *asked: question(*asked[:2], {**asked[2], "method": "refined"}))
        first = table.noisy_quantiles("pay", [0.5], epsilon=1, method="staged")
    spent = table.budget.spent
    again = table.noisy_quantiles("pay", [0.5], epsilon=1, method="staged")
    assert table.budget.spent == spent
    assert again.value.tolist() == first.value.tolist()
    table.noisy_quantiles("pay", [0.5], epsilon=1, method="staged", fresh=True)
    assert table.budget.spent == spent + 1
