"""Whatever is asked in whatever order, no row's loss exceeds what was charged, and no charge exceeds the budget.

What is proved in docs/proofs/protected-tables.md is tested here.
"""

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

import veilcube as vc
from veilcube.curator.protected.table import ProtectedTable, private_view
from veilcube.errors import BudgetExceededError

SCHEMA = vc.Schema([vc.Nominal("a", ["x", "y", "z"]), vc.Nominal("b", ["u", "v"]), vc.Ordinal("c", 1, 2)])
CUBE = vc.Cube(SCHEMA, np.arange(12).reshape(SCHEMA.shape))
TOTAL = Fraction(1)

conditions = st.sampled_from([{}, {"a": "x"}, {"a": ["x", "z"]}, {"b": "v"}, {"c": 1}])
steps = st.one_of(
    st.tuples(st.just("where"), conditions),
    st.tuples(st.just("part"), st.sampled_from([("a", "x"), ("a", "y"), ("b", "u"), ("c", 2)])),
    st.tuples(st.just("band"), st.sampled_from(["1", "2"])),
    st.tuples(st.just("condition"), st.sampled_from(["a = 'x'", "a <> 'x' AND c = 1"])),
)
views = st.lists(steps, max_size=3)
questions = st.sampled_from(["count", "sum", "mean", "marginal"])
prices = st.sampled_from(["1/10", "1/7", "1/3", "1/2"])
calls = st.lists(st.tuples(views, questions, prices, st.booleans()), min_size=1, max_size=9)


def view_of(table: ProtectedTable, path: list[tuple[str, object]]) -> ProtectedTable:
    for kind, choice in path:
        if kind == "where":
            table = table.where(choice)
        elif kind == "part":
            table = table.partition(choice[0])[choice[1]]
        elif kind == "band":
            table = table.partition("b", bands={"c": [2]})["u", choice]
        else:
            table = table.partition(conditions=["a = 'x'", "a <> 'x' AND c = 1"])[choice]
    return table


def ask(view: ProtectedTable, question: str, price: dict[str, str], fresh: bool) -> None:
    paid = {**price, "fresh": fresh}
    if question == "count":
        view.noisy_count(**paid)
    elif question == "sum":
        view.noisy_sum("c", **paid)
    elif question == "mean":
        view.noisy_mean("c", **paid)
    else:
        view.noisy_marginal("a", "b", **paid)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls)
def test_no_sequence_of_calls_spends_more_than_the_budget(
    sequence: list[tuple[list[tuple[str, object]], str, str, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = vc.Ledger(Path(folder) / "budget.db")
        table = vc.protect(CUBE, ledger=ledger, dataset="d", epsilon=TOTAL)
        loss = np.full(SCHEMA.shape, Fraction(0), dtype=object)
        for path, question, epsilon, fresh in sequence:
            view = view_of(table, path)
            before = (ledger.budget("d").spent, len(ledger.history("d").answers))
            try:
                ask(view, question, {"epsilon": epsilon}, fresh)
            except BudgetExceededError:
                assert (ledger.budget("d").spent, len(ledger.history("d").answers)) == before
                continue
            except vc.VeilcubeError:  # a view without rows or with one value left: refused before it is paid for
                assert (ledger.budget("d").spent, len(ledger.history("d").answers)) == before
                continue
            if len(ledger.history("d").answers) > before[1]:
                loss[private_view(view).region.mask()] += Fraction(epsilon)
            # What a row in some cell has lost is the sum over all new measurements that its cell took part in.
            assert max(loss.ravel()) <= ledger.budget("d").spent <= TOTAL


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls, st.sampled_from(["add-remove", "replace"]), st.data())
def test_no_sequence_of_pure_and_gaussian_calls_spends_more_than_a_budget_in_rho(
    sequence: list[tuple[list[tuple[str, object]], str, str, bool]], neighbours: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = vc.Ledger(Path(folder) / "budget.db")
        ledger.create("d", rho=TOTAL)
        table = vc.protect(CUBE, ledger=ledger, dataset="d", neighbours=neighbours)
        loss = np.full(SCHEMA.shape, Fraction(0), dtype=object)
        for path, question, price, fresh in sequence:
            kind = data.draw(st.sampled_from(["epsilon", "rho"]))
            view = view_of(table, path)
            before = (ledger.budget("d").spent, len(ledger.history("d").answers))
            try:
                ask(view, question, {kind: price}, fresh)
            except vc.VeilcubeError:
                assert (ledger.budget("d").spent, len(ledger.history("d").answers)) == before
                continue
            if len(ledger.history("d").answers) > before[1]:
                cost = Fraction(price) if kind == "rho" else Fraction(price) ** 2 / 2
                loss[private_view(view).region.mask()] += cost
            assert max(loss.ravel()) <= ledger.budget("d").spent <= TOTAL
