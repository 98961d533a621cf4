"""Ledgers with many charges, odd amounts and a long queue: no slower, still exact, nobody refused for waiting."""

import os
import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest
from benchmarks.scale.long_ledgers import add_many_charges

import veilcube as vc
from support.statements import laplace_statement
from veilcube.curator.ledger import PartOf, charging
from veilcube.curator.ledger.rows.balance import LONGEST_BITS, Balance
from veilcube.curator.ledger.stores.queue import NoTurnError, turn
from veilcube.errors import BudgetExceededError, LedgerError


def ledger_with(path: Path, charges: int) -> vc.Ledger:
    ledger = vc.Ledger(path)
    ledger.create("people", 10**6)
    add_many_charges(ledger, "people", [Fraction(1, 1000 + number) for number in range(charges)])
    return ledger


def cpu_of(action: Callable[[], object], times: int) -> float:
    """Return the middle one of several times that the processor was at work."""
    spent = []
    for _ in range(times):
        before = time.process_time()
        action()
        spent.append(time.process_time() - before)
    return statistics.median(spent)


# How long a charge takes


def test_a_charge_with_many_behind_it_costs_what_one_with_few_does(tmp_path: Path) -> None:
    few, many = ledger_with(tmp_path / "few.db", 100), ledger_with(tmp_path / "many.db", 20_000)
    assert len(many.history(limit=10)) == 10
    costs = [
        cpu_of(lambda ledger=ledger: ledger.charge("people", laplace_statement("1/7"), purpose="p"), 15)
        for ledger in (few, many, few, many)  # in turns, so that a busy machine is busy for both
    ]
    assert min(costs[1::2]) <= 1.5 * min(costs[::2])
    assert many.budget("people").spent == sum(Fraction(1, 1000 + number) for number in range(20_000)) + Fraction(30, 7)


def test_amounts_of_a_thousand_bits_slow_no_later_charge_and_stay_exact(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "long.db")
    ledger.create("people", 1)
    amounts = [Fraction(1, 2**1000 + 2 * number + 1) for number in range(1000)]
    add_many_charges(ledger, "people", amounts)
    spent = ledger.budget("people").spent
    assert spent == sum(amounts)
    assert spent.denominator.bit_length() > 100_000
    short = vc.Ledger(tmp_path / "short.db")
    short.create("people", 1)
    add_many_charges(short, "people", amounts[:10])
    costs = [
        cpu_of(lambda ledger=ledger: ledger.charge("people", laplace_statement("1/900"), purpose="p"), 15)
        for ledger in (short, ledger, short, ledger)
    ]
    assert min(costs[1::2]) <= 1.5 * min(costs[::2])
    ledger.verify()


def test_what_is_left_of_a_sum_between_bounds_is_granted_to_the_last_bit(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "long.db")
    one, two = Fraction(1, 2**1000 + 1), Fraction(1, 3**600)
    # Five unlike denominators of a thousand bits, whose sum with the last is 1/2 exactly.
    ledger.create("people", Fraction(1, 2))
    amounts = [Fraction(1, 2**1000 + number) for number in (1, 3, 5, 7, 9)]
    add_many_charges(ledger, "people", [*amounts, one, two])
    balance = sum(amounts) + one + two
    assert ledger.budget("people").left == Fraction(1, 2) - balance
    # More than is left by less than the bounds can tell: refused because the exact sum is looked at.
    kept = Balance.zero()
    for amount in (*amounts, one, two):
        kept = kept.plus(amount)
    assert kept.exact is None
    assert kept.low < balance < kept.high
    assert kept.fits(Fraction(1, 2) - balance, Fraction(1, 2)) is None
    assert (kept.fits(Fraction(1, 3), Fraction(1, 2)), kept.fits(Fraction(1), Fraction(1, 2))) == (True, False)


def test_a_balance_is_exact_until_its_fraction_is_long_and_lies_between_its_bounds_after() -> None:
    kept, exact = Balance.zero(), Fraction(0)
    for number in range(40):
        amount = Fraction(number + 1, 2**300 + 2 * number + 1)
        kept, exact = kept.plus(amount), exact + amount
        assert kept.low <= exact <= kept.high
        assert (kept.exact is not None) == (exact.denominator.bit_length() <= LONGEST_BITS)
        assert kept.high - kept.low <= Fraction(number + 1, 2**LONGEST_BITS)
        assert Balance.read(kept.text) == kept
    assert kept.exact is None


def test_a_charge_smaller_than_any_float_counts(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "tiny.db")
    ledger.create("people", "1/10")
    tiny = Fraction(1, 2**1090)
    assert float(tiny) == 0
    ledger.charge("people", laplace_statement(tiny), purpose="hardly anything")
    assert ledger.budget("people").spent == tiny
    with pytest.raises(BudgetExceededError, match=r"is left of 0\.1"):
        ledger.charge("people", laplace_statement("1/10"), purpose="a hair too much")
    ledger.verify()


def test_parts_with_long_amounts_cost_what_they_add_exactly(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "parts.db")
    ledger.create("people", 10)
    places = [PartOf('{"by": ["age"]}', f"[{cell}]") for cell in range(2)]
    for number in range(6):
        amount = Fraction(1, 2**1000 + 2 * number + 1)
        ledger.charge("people", laplace_statement(amount), purpose="long", within=[places[0]])
    receipt = ledger.charge("people", laplace_statement("1/7"), purpose="short", within=[places[0]])
    assert ledger.history("people")[-1].amount == Fraction(1, 7)
    assert receipt.charge_id == 7
    assert ledger.charge("people", laplace_statement("1/7"), purpose="covered", within=[places[1]]).charge_id is None
    ledger.verify()


@pytest.mark.parametrize("moment", ["1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])
def test_a_clock_that_jumps_changes_no_balance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    ledger = vc.Ledger(tmp_path / "clock.db")
    ledger.create("people", 1)
    ledger.charge("people", laplace_statement("1/3"), purpose="before")
    monkeypatch.setattr(charging, "now", lambda: moment)
    ledger.charge("people", laplace_statement("1/3"), purpose="far away")
    monkeypatch.undo()
    ledger.charge("people", laplace_statement("1/3"), purpose="after")
    assert [charge.purpose for charge in ledger.history("people")] == ["before", "far away", "after"]
    assert ledger.budget("people").left == 0
    assert ledger.verify().charges == 3


# Reading a long history


def test_history_is_read_in_pages(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "many.db", 2500)
    whole = ledger.history("people")
    assert [charge.id for charge in whole] == list(range(1, 2501))
    pages = [ledger.history("people", limit=1000, offset=offset) for offset in (0, 1000, 2000, 3000)]
    assert [charge for page in pages for charge in page] == whole
    assert [len(page) for page in pages] == [1000, 1000, 500, 0]
    assert list(ledger.charges("people")) == whole == list(ledger.charges())
    assert ledger.history(limit=2, offset=7) == whole[7:9]
    for wrong in ({"limit": -1}, {"offset": 1.5}, {"limit": "many"}):
        with pytest.raises(LedgerError):
            ledger.history("people", **wrong)


def test_a_page_has_the_answers_that_its_charges_paid_for(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "answers.db")
    ledger.create("people", 10)
    table = vc.protect(vc.Cube(vc.Schema([vc.Ordinal("age", 0, 7)]), [5] * 8), ledger=ledger, dataset="people")
    for low in range(4):
        table.where(age=(low, 7)).noisy_count(epsilon=1)
    assert [answer.charge for answer in ledger.history("people", limit=2, offset=1).answers] == [2, 3]
    assert len(ledger.history("people").answers) == 4


def test_a_walk_through_the_charges_holds_a_page_of_them(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "many.db", 6000)
    list(islice(ledger.charges("people"), 10))  # what is made once
    tracemalloc.start()
    assert sum(1 for _ in ledger.charges("people")) == 6000
    walking = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    kept = ledger.history("people")
    holding = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(kept) == 6000
    assert walking < holding / 2


def test_a_charge_made_during_a_walk_does_not_wait_for_its_end(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path / "many.db", 1500)
    walk = ledger.charges("people")
    next(walk)
    vc.Ledger(ledger.path, timeout=0).charge("people", laplace_statement(1), purpose="meanwhile")
    assert sum(1 for _ in walk) == 1500


# The queue


def test_who_waits_gets_a_turn_in_the_order_of_coming(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.touch()
    order: list[int] = []

    def wait(number: int) -> None:
        with turn(path, time.monotonic() + 60):
            order.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(12)]
    with turn(path, time.monotonic()):
        for thread in threads:
            thread.start()
            time.sleep(0.02)  # until it waits
    for thread in threads:
        thread.join()
    assert order == list(range(12))


def test_who_waits_too_long_leaves_the_queue_and_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.touch()
    with turn(path, time.monotonic()):
        for patience in (0.0, 0.05):
            with pytest.raises(NoTurnError), turn(path, time.monotonic() + patience):
                pytest.fail("two had the turn at once")
    with turn(path, time.monotonic() + 60):
        pass


def test_a_process_that_is_killed_while_it_has_the_turn_gives_it_back(tmp_path: Path) -> None:
    path, ready = tmp_path / "key", os.pipe()
    path.touch()
    child = os.fork()
    if child == 0:
        with turn(path, time.monotonic() + 60):
            os.write(ready[1], b"x")
            time.sleep(600)
        os._exit(0)
    os.read(ready[0], 1)
    with pytest.raises(NoTurnError), turn(path, time.monotonic()):
        pytest.fail("two had the turn at once")
    os.kill(child, 9)
    os.waitpid(child, 0)
    with turn(path, time.monotonic() + 10):
        pass
