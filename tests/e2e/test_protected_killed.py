"""Protected tables among processes that die or race: an answer that anybody saw is paid for and stored."""

import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

import veilcube as vc

KILLS = 4

PREPARE = """
import os, signal, sys
from pathlib import Path
import veilcube as vc
schema = vc.Schema([vc.Ordinal("age", 1, 5), vc.Nominal("sex", ["Female", "Male"])])
cube = vc.Cube(schema, [[3, 4]] * 5)
"""

ASKER = (
    PREPARE
    + """
# Compiling is done with when the process says that it is ready, so that it is asking that gets killed.
vc.protect(cube, ledger=sys.argv[1], dataset="warming up", epsilon=1000).noisy_count(epsilon="1/1000")
table = vc.protect(cube, ledger=sys.argv[1], dataset="people")
print("ready", flush=True)
while True:
    print(int(table.noisy_count(epsilon="1/1000", fresh=True).value), flush=True)
    for age in (1, 2):
        print(int(table.partition("age")[age].noisy_count(epsilon="1/1000", fresh=True).value), flush=True)
"""
)

# Dies by its own hand at a chosen moment: before the noise is drawn, or with the noise in hand but not stored.
SUICIDE = (
    PREPARE
    + """
from dataclasses import replace
from veilcube.curator.ledger import Ledger
from veilcube.curator.mechanisms import Samplers
from veilcube.curator.protected.table import ProtectedTable, private_view
table = vc.protect(cube, ledger=sys.argv[1], dataset="people")
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "before drawing":
    view = private_view(table)
    table = ProtectedTable(replace(view, desk=replace(view.desk, samplers=Samplers(die))))
else:
    Ledger.keep = die
print(int(table.noisy_count(epsilon="1/4").value), flush=True)
"""
)

SPENDER = (
    PREPARE
    + """
from veilcube.errors import BudgetExceededError
table = vc.protect(cube, ledger=vc.Ledger(sys.argv[1], timeout=60), dataset="people")
part = table.partition("sex")[sys.argv[2]]
print("ready", flush=True)
sys.stdin.readline()
answered = 0
while True:
    try:
        (table if answered % 2 else part).noisy_count(epsilon="1/30", fresh=True)
    except BudgetExceededError:
        break
    answered += 1
print(answered, flush=True)
"""
)


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_kill_9_never_leaves_an_answer_that_was_not_paid_for_and_stored(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1000)
    chance = random.Random(4)
    seen = 0
    for _ in range(KILLS):
        with start(ASKER, str(ledger.path)) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            # Some answers first, however slow the machine is, and then any moment between two of them.
            lines = [child.stdout.readline() for _ in range(chance.randint(1, 6))]
            time.sleep(chance.uniform(0, 0.15))
            child.send_signal(signal.SIGKILL)
            lines += child.stdout.read().splitlines(keepends=True)
        told = [int(line) for line in lines if line.endswith("\n")]
        stored = [answer.values[0] for answer in ledger.history("people").answers]
        # The process may have stored one more than it could tell.
        assert stored[seen : seen + len(told)] == told
        assert len(stored) - seen - len(told) in (0, 1)
        seen = len(stored)
        history = ledger.history("people")
        assert ledger.budget("people").spent == sum(charge.epsilon for charge in history)
        assert {answer.charge for answer in history.answers} - {None} <= {charge.id for charge in history}
    assert seen >= KILLS


@pytest.mark.parametrize("moment", ["before drawing", "before storing"])
def test_a_crash_between_charge_and_answer_wastes_the_budget(tmp_path: Path, moment: str) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    with start(SUICIDE, str(ledger.path), moment) as child:
        out, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert out == ""
    history = ledger.history("people")
    assert [charge.epsilon for charge in history] == [Fraction(1, 4)]
    assert history.answers == ()


def test_racing_processes_spend_the_budget_exactly_and_no_more(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    racers = [start(SPENDER, str(ledger.path), sex) for sex in ("Female", "Male")]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    answered = 0
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        out, _ = racer.communicate(timeout=800)
        answered += int(out)
    history = ledger.history("people")
    assert ledger.budget("people").spent == 1 == sum(charge.epsilon for charge in history)
    assert len(history.answers) == answered
    # Both parts were asked, and what one spent covered some of the other.
    assert answered > 30
