"""No exact value leaves with an exception, in its text or in the local variables of its traceback, or by a pickle."""

import copy
import copyreg
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import veilcube as vc
from veilcube.curator.cube import RowList, Tally
from veilcube.curator.ledger import Ledger
from veilcube.curator.persons import PersonRows
from veilcube.curator.protected.desk import Desk
from veilcube.curator.protected.rows import PrivateRows
from veilcube.curator.protected.table import ProtectedTable, private_view
from veilcube.curator.protected.view import View
from veilcube.curator.sampling.rank import _Coins
from veilcube.curator.sampling.source import SystemWords
from veilcube.curator.tables import Engine
from veilcube.errors import BudgetExceededError, CapacityError, LedgerError, PrivacyError, QueryError, VeilcubeError
from veilcube.privacy import PrivacyUnit
from veilcube.privacy.rank_mechanisms import RankCosts, RankMethod, rank_costs

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 7), vc.Nominal("sex", ["F", "M"])])
# Large and odd, so that none of them, and no sum of neighbours, is a public number by chance.
COUNTS = 734_219 + 1_013 * np.arange(16).reshape(8, 2) ** 3
CUBE = vc.Cube(SCHEMA, COUNTS)
NUMBER = re.compile(r"\d[\d,_]*")


def _sums(counts: np.ndarray) -> set[int]:
    """The counts, the sums over neighbours, and how far those lie from each other."""
    upto = np.concatenate([[0], np.cumsum(counts.ravel())])
    return {int(abs(a - b)) for a in upto for b in upto}


FORBIDDEN = {
    number
    for counts in (COUNTS, COUNTS.sum(axis=1), COUNTS.sum(axis=0), COUNTS[:, 0], COUNTS[:, 1])
    for number in _sums(counts)
    if number > 10_000
}


def exact_values_in(problem: BaseException) -> list[str]:
    shown = "".join(traceback.TracebackException.from_exception(problem, capture_locals=True).format())
    numbers = {found.replace(",", "").replace("_", "") for found in NUMBER.findall(shown)}
    return sorted(number for number in numbers if int(number[:30]) in FORBIDDEN)


@pytest.fixture
def table(tmp_path: Path) -> ProtectedTable:
    return vc.protect(CUBE, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="people", epsilon=1000)


Ask = Callable[[ProtectedTable], object]
QUESTIONS: dict[str, Ask] = {
    "count": lambda t: t.noisy_count(epsilon=1),
    "where": lambda t: t.where(age=(2, 5)).noisy_count(epsilon=1),
    "sum": lambda t: t.noisy_sum("age", epsilon=1),
    "mean": lambda t: t.noisy_mean("age", epsilon=1),
    "moment": lambda t: t.noisy_moment({"age": 2}, epsilon=1),
    "marginal": lambda t: t.noisy_marginal("age", "sex", epsilon=1),
    "partition": lambda t: t.partition("sex").noisy_mean("age", epsilon=1),
    "part": lambda t: t.partition("sex")["F"].noisy_count(epsilon=1),
    "max": lambda t: t.noisy_max("age", epsilon=1, interval=0.5),
    "min": lambda t: t.noisy_min("age", epsilon=1, method="exponential"),
    "rank": lambda t: t.noisy_quantile("age", rank=10, epsilon=1, interval=0.5),
    "quantile": lambda t: t.noisy_quantile("age", 0.5, epsilon=1),
    "split": lambda t: t.noisy_quantiles("age", [0.25, 0.5], epsilon=1, method="split"),
    "tree": lambda t: t.noisy_quantiles("age", [0.25, 0.5], epsilon=1, method="tree"),
    "refined": lambda t: t.noisy_quantiles("age", [0.25, 0.5], epsilon=1, method="staged"),
    "quantiles": lambda t: t.noisy_quantiles("age", [0.25, 0.5], epsilon=1),
    "distributive": lambda t: t.distributive(vc.DistributiveQuery.count(), "age", by=["sex"], epsilon=1),
    "chosen": lambda t: t.distributive(vc.DistributiveQuery.max(range(8)), "age", by=["sex"], epsilon=1),
}
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(),
    "refined": vc.Tree(refine=True),
    "wavelet": vc.Wavelet(),
    "marginals": vc.Marginals(k=1),
    "adaptive": vc.Adaptive(),
    "kd": vc.KdTree(),
    "grouped tables": vc.GroupedTables(),
}
asked = pytest.mark.parametrize("ask", QUESTIONS.values(), ids=list(QUESTIONS))
released = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=list(STRATEGIES))


def _raise(problem: BaseException) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise problem

    return fail


def _quote_counts(fault: type[BaseException]) -> Callable[..., object]:
    """Fail with words that quote the counts, as those of a library may, where an exception of this kind can."""

    def fail(*_: object) -> object:
        raise RuntimeError(f"the counts are {COUNTS.tolist()}") if fault is RuntimeError else fault()

    return fail


@asked
def test_a_question_over_the_budget_reads_nothing_and_shows_nothing(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = vc.protect(CUBE, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="people", epsilon=0.5)
    monkeypatch.setattr(PrivateRows, "counts_within", _raise(AssertionError("read before the budget was asked")))
    with pytest.raises(BudgetExceededError) as refusal:
        ask(table)
    assert exact_values_in(refusal.value) == []


@asked
@pytest.mark.parametrize("broken", ["charge", "keep"])
def test_a_ledger_that_fails_shows_nothing(
    ask: Ask, broken: str, table: ProtectedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, broken, _raise(LedgerError("the ledger is locked")))
    with pytest.raises(LedgerError) as refusal:
        ask(table)
    assert exact_values_in(refusal.value) == []


@asked
@pytest.mark.parametrize("fault", [RuntimeError, MemoryError, KeyboardInterrupt])
def test_a_fault_while_noise_is_drawn_shows_nothing(
    ask: Ask, fault: type[BaseException], table: ProtectedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemWords, "words", _quote_counts(fault))
    expected = PrivacyError if fault is RuntimeError else fault
    with pytest.raises(expected) as stop:
        ask(table)
    assert exact_values_in(stop.value) == []
    assert table.budget.spent > 0


@released
@pytest.mark.parametrize("fault", [RuntimeError, MemoryError, KeyboardInterrupt])
def test_a_fault_in_a_release_shows_nothing(
    strategy: vc.Plan, fault: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemWords, "words", _quote_counts(fault))
    expected = {RuntimeError: PrivacyError, MemoryError: CapacityError}.get(fault, fault)
    with pytest.raises(expected) as stop:
        vc.release(CUBE, epsilon=1, strategy=strategy)
    assert exact_values_in(stop.value) == []


@released
def test_a_release_over_the_budget_shows_nothing(strategy: vc.Plan, tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 0.5)
    with pytest.raises(BudgetExceededError) as refusal:
        vc.release(CUBE, epsilon=1, strategy=strategy, ledger=ledger, dataset="people")
    assert exact_values_in(refusal.value) == []


# Stopped at any line


INTERRUPTED = re.compile(r"veilcube/(curator|operators|posterior|privacy|release|session)/(?!secrecy|ledger)")


def _lines_of(ask: Callable[[], object], stop_at: int | None) -> int:
    """Run it, and press Ctrl-C at one of the lines of veilcube that it runs; returns how many lines ran."""
    ran = 0

    def on_line(frame: FrameType, event: str, _: object) -> object:
        nonlocal ran
        if event == "line":
            ran += 1
            if ran == stop_at:
                raise KeyboardInterrupt
        return on_line

    def on_call(frame: FrameType, event: str, _: object) -> object:
        # Whatever guards the private side cannot be interrupted while it wipes: that is not what is tested.
        # A schema that is half made cannot be shown, and a ledger that is stopped in a transaction stays locked.
        return on_line if INTERRUPTED.search(frame.f_code.co_filename) else None

    previous = sys.gettrace()
    sys.settrace(on_call)
    try:
        ask()
    finally:
        sys.settrace(previous)
    return ran


def _stops(lines: int, seed: int) -> Iterator[int]:
    yield from sorted(np.random.default_rng(seed).integers(1, lines + 1, 25).tolist())


def _shown_if_stopped(ask: Callable[[], object], stop_at: int) -> list[str]:
    """Return the exact values that whatever was raised shows."""
    # In a thread of its own: Python takes an exception whose handler was stopped by a trace as handled for ever.
    with ThreadPoolExecutor(1) as thread:
        stop = thread.submit(_lines_of, ask, stop_at).exception()
    # Other draws than before may have taken fewer lines.
    return [] if stop is None else exact_values_in(stop)


def _interrupted_anywhere(ask: Callable[[], object], seed: int) -> None:
    ask()
    lines = _lines_of(ask, None)
    for stop_at in _stops(lines, seed):
        assert _shown_if_stopped(ask, stop_at) == [], f"line {stop_at} of {lines}"


@asked
def test_a_question_that_is_interrupted_anywhere_shows_nothing(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = vc.protect(CUBE, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="people", epsilon=1000)
    monkeypatch.setattr(Desk, "recall", lambda *_, **__: None)
    _interrupted_anywhere(lambda: ask(table), 3)


@released
def test_a_release_that_is_interrupted_anywhere_shows_nothing(strategy: vc.Plan) -> None:
    plan = vc.plan(SCHEMA, 1, strategy)
    _interrupted_anywhere(lambda: vc.release(CUBE, plan=plan), 4)


WAGES = vc.Schema([vc.Ordinal("wage", 0, 9_999_999)])
# Looked up where they are used, because the test's own variables are in the traceback as well.
FRAMES = {
    "fitting": pd.DataFrame({"wage": sorted(number for number in FORBIDDEN if number < 9_999_999)[:40]}),
    "refused": pd.DataFrame({"wage": [*sorted(FORBIDDEN)[:40], -1]}),
}


@pytest.mark.parametrize(
    "read",
    [
        lambda frame, _: vc.count(FRAMES[frame], WAGES),
        lambda frame, _: vc.release(FRAMES[frame], schema=WAGES, epsilon=1, strategy="identity"),
        lambda frame, path: vc.protect(FRAMES[frame], WAGES, f"sqlite:///{path}/b.db", "wages", 1),
        lambda frame, _: vc.Cube(WAGES, FRAMES[frame]["wage"].to_numpy()),
    ],
    ids=["count", "release", "protect", "cube"],
)
def test_a_table_that_is_refused_or_interrupted_while_it_is_read_shows_no_row(
    read: Callable[[str, Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(VeilcubeError) as refusal:
        read("refused", tmp_path)
    assert exact_values_in(refusal.value) == []
    monkeypatch.setattr(Engine, "query", _raise(KeyboardInterrupt()))
    monkeypatch.setattr(Engine, "stream", _raise(KeyboardInterrupt()))
    with pytest.raises((KeyboardInterrupt, VeilcubeError)) as stop:
        read("fitting", tmp_path)
    assert exact_values_in(stop.value) == []


# Types that hold exact values


def _persons() -> PersonRows:
    persons = PersonRows()
    persons.add(pa.array(COUNTS.ravel()))
    return persons


def _holders(tmp_path: Path) -> list[object]:
    table = vc.protect(CUBE, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="people", epsilon=1000)
    costs = rank_costs(COUNTS.sum(axis=1), 1, 1, RankMethod.PERMUTE_AND_FLIP)
    return [
        CUBE,
        Tally(SCHEMA, [(0, 1)], COUNTS.ravel().copy(), PrivacyUnit.row()),
        RowList(SCHEMA, [np.zeros(COUNTS[0, 0], dtype=np.uint8)] * 2, PrivacyUnit.row()),
        _persons(),
        private_view(table).desk.rows,
        private_view(table).desk,
        table,
        table.partition("sex"),
        costs,
        _Coins.of(costs),
    ]


def test_what_holds_exact_values_is_silent_and_does_not_pickle(tmp_path: Path) -> None:
    for holder in _holders(tmp_path):
        shown = repr(holder) + str(holder) + f"{holder}"
        assert not [n for n in NUMBER.findall(shown) if int(n.replace(",", "")) in FORBIDDEN], type(holder)
        for way in (
            pickle.dumps,
            copy.copy,
            copy.deepcopy,
            lambda value: value.__reduce__(),
            lambda value: value.__reduce_ex__(2),
            lambda value: copyreg._reduce_ex(value, 1),  # type: ignore[attr-defined]
        ):
            with pytest.raises(PrivacyError, match="cannot be copied or pickled"):
                way(holder)


def test_the_search_for_exact_values_finds_them() -> None:
    def leaks() -> None:
        counts = COUNTS
        raise ValueError(counts.shape)

    with pytest.raises(ValueError, match="8, 2") as stop:
        leaks()
    assert exact_values_in(stop.value)
    assert isinstance(rank_costs(COUNTS.sum(axis=1), 1, 1, RankMethod.EXPONENTIAL), RankCosts)


REFUSED: dict[str, Ask] = {
    "partition": lambda t: t.partition("nobody"),
    "marginal": lambda t: t.noisy_marginal("age", "age", epsilon=1),
    "select": lambda t: t.select("nobody"),
    "where": lambda t: t.select("sex").where("age = 3"),
    "part": lambda t: t.partition("age")["nobody"],
}


def _private_objects_in(problem: BaseException) -> list[str]:
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    held = [value for frame in frames for value in frame.f_locals.values()]
    return [type(value).__name__ for value in held if isinstance(value, View | Desk | PrivateRows | vc.Cube)]


@pytest.mark.parametrize("ask", REFUSED.values(), ids=list(REFUSED))
def test_what_a_table_refuses_leads_to_no_private_object(table: ProtectedTable, ask: Ask) -> None:
    with pytest.raises(QueryError) as refusal:
        ask(table)
    assert _private_objects_in(refusal.value) == []


def test_a_lost_ledger_leads_to_no_private_object(tmp_path: Path) -> None:
    table = vc.protect(CUBE, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="people", epsilon=1)
    (tmp_path / "budget.db").unlink()
    with pytest.raises(LedgerError) as refusal:
        _ = table.budget
    assert _private_objects_in(refusal.value) == []
