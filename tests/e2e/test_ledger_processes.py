"""The ledger among real processes: races for the last of a budget, kills at any moment, crashes inside a commit."""

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import support.ledger_worker
from support.statements import laplace_statement
from veilcube.curator.ledger import Ledger
from veilcube.errors import LedgerError

SCRIPT = Path(support.ledger_worker.__file__)


class Worker:
    """A process that runs one command of the worker script; ``hear`` is None once it ended."""

    def __init__(self, address: str, *command: object) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(280)
        self.socket.connect(address)
        self.stream = self.socket.makefile("rw")
        self.tell(json.dumps(command, default=str))

    def tell(self, line: str) -> None:
        self.stream.write(line + "\n")
        self.stream.flush()

    def hear(self) -> dict[str, Any] | None:
        line = self.stream.readline()
        return json.loads(line) if line else None

    def end(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)
        while self.stream.readline():
            pass
        self.stream.close()
        self.socket.close()


class Workers:
    """Starts workers."""

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, *command: object) -> dict[str, Any]:
        """Return the one answer of a command."""
        with self.start(1, *command) as (worker,):
            answer = worker.hear()
        assert answer is not None, "the worker ended without a word"
        assert "problem" not in answer, answer["problem"]
        return answer

    @contextmanager
    def start(self, how_many: int, *command: object) -> Iterator[list[Worker]]:
        with ExitStack() as stack:
            group = [Worker(self.address, *command) for _ in range(how_many)]
            for worker in group:
                stack.callback(worker.end)
            yield group

    @contextmanager
    def ready(self, how_many: int, *command: object) -> Iterator[list[Worker]]:
        """Start workers that say when they are ready."""
        with self.start(how_many, *command) as group:
            for worker in group:
                assert "ready" in worker.hear()
            yield group


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/workers"
        environment = os.environ | {"PYTHONPATH": str(SCRIPT.parent.parent)}
        command = [sys.executable, str(SCRIPT), address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert "ready" in process.stdout.readline()
            yield Workers(address)
            process.kill()


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("adult", 1000)
    return ledger


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    folder = tmp_path / "answers"
    folder.mkdir()
    return folder


def test_of_processes_that_race_for_the_last_of_a_budget_exactly_one_wins(book: Ledger, workers: Workers) -> None:
    rounds = 20
    with workers.ready(4, "serve", book.path) as racers:
        for number in range(rounds):
            book.create(f"round-{number}", 1)
            book.charge(f"round-{number}", laplace_statement("2/3"), purpose="all but the last third")
            for racer in racers:
                racer.tell(f"round-{number} 1/3 1")
            outcomes = [racer.hear() for racer in racers]
            assert sorted(len(outcome["charges"]) for outcome in outcomes) == [0, 0, 0, 1]
            assert book.budget(f"round-{number}").left == 0
    winners = {charge.analyst for charge in book.history() if charge.analyst is not None}
    assert len(book.history()) == 2 * rounds
    assert len(winners) > 1, "one process won every round: they did not race"


def test_small_charges_of_many_processes_add_up_exactly_and_never_exceed_the_budget(
    book: Ledger, workers: Workers
) -> None:
    book.create("shared", "7/3")
    with workers.ready(4, "serve", book.path) as spenders:
        for spender, epsilon in zip(spenders, ("1/7", "1/11", "1/13", "1/3"), strict=True):
            spender.tell(f"shared {epsilon} 20")
        outcomes = [spender.hear() for spender in spenders]
    history = book.history("shared")
    charged = sorted(number for outcome in outcomes for number in outcome["charges"])
    assert charged == [charge.id for charge in history]
    assert sum(outcome["refused"] for outcome in outcomes) == 80 - len(history) > 0
    budget = book.budget("shared")
    assert budget.spent == sum(charge.epsilon for charge in history) <= Fraction(7, 3)
    assert budget.left < Fraction(1, 13) + Fraction(1, 11) + Fraction(1, 7) + Fraction(1, 3)


@pytest.mark.slow
def test_64_processes_that_hammer_one_budget_never_overspend_lose_no_charge_and_are_never_refused_for_waiting(
    book: Ledger, workers: Workers
) -> None:
    book.create("shared", "1/2")
    with workers.ready(64, "serve", book.path) as spenders:
        for spender in spenders:
            spender.tell("shared 1/199 2")
        outcomes = [spender.hear() for spender in spenders]
    assert all("charges" in outcome for outcome in outcomes), outcomes
    charged = sorted(number for outcome in outcomes for number in outcome["charges"])
    assert charged == [charge.id for charge in book.history("shared")] == list(range(1, 100))
    assert sum(outcome["refused"] for outcome in outcomes) == 128 - 99
    assert book.budget("shared").spent == Fraction(99, 199)
    assert book.verify().charges == 99


def test_a_kill_at_any_moment_leaves_no_answer_without_its_charge(
    book: Ledger, answers: Path, workers: Workers
) -> None:
    left = workers.run("kill_at_random", book.path, answers, 30)
    assert 1 <= left["answers"] <= left["charges"]
    assert book.budget("adult").spent == left["charges"] * Fraction(1, 1000)


@pytest.mark.slow
def test_hundreds_of_kills_leave_no_answer_without_its_charge(book: Ledger, answers: Path, workers: Workers) -> None:
    left = workers.run("kill_at_random", book.path, answers, 300)
    assert 1 <= left["answers"] < left["charges"]
    assert left["hot journals"] > 0, "no kill ever hit a transaction"


def test_a_kill_before_any_line_of_code_leaves_no_answer_without_its_charge(
    book: Ledger, answers: Path, workers: Workers
) -> None:
    left = workers.run("kill_at_every_line", book.path, answers, "charge first")
    assert left["exit code"] == 0
    assert left["points"] > 50
    assert left["answers"] < left["charges"] < left["points"]


def test_the_kills_would_notice_an_answer_that_precedes_its_charge(
    book: Ledger, answers: Path, workers: Workers
) -> None:
    with pytest.raises(AssertionError, match="an answer without a charge"):
        workers.run("kill_at_every_line", book.path, answers, "answer first")


def test_a_crash_inside_a_transaction_is_undone_by_the_next_who_opens_the_ledger(
    book: Ledger, workers: Workers
) -> None:
    book.charge("adult", laplace_statement(1), purpose="before the crash")
    before = book.path.read_bytes()
    with workers.start(1, "crash_in_transaction", book.path) as (worker,):
        assert worker.hear() is None
    journal = Path(f"{book.path}-journal")
    assert journal.stat().st_size > 0
    assert book.path.read_bytes() != before, "the crash came before anything was overwritten"
    assert [charge.purpose for charge in book.history()] == ["before the crash"]
    assert not journal.exists()
    assert book.path.read_bytes() == before
    assert book.charge("adult", laplace_statement(1), purpose="after the crash").charge_id == 2


def test_a_ledger_that_another_process_holds_is_refused_after_the_timeout_and_works_again_later(
    book: Ledger, workers: Workers
) -> None:
    impatient = Ledger(book.path, timeout=0.1)
    with workers.ready(1, "hold", book.path):
        with pytest.raises(LedgerError, match=r"held by another program.*try again"):
            impatient.charge("adult", laplace_statement(1), purpose="too early")
        with pytest.raises(LedgerError, match="held by another program"):
            impatient.history()
    assert impatient.charge("adult", laplace_statement(1), purpose="later").charge_id == 1


def test_processes_that_create_the_same_ledger_at_once_agree_on_one(tmp_path: Path, workers: Workers) -> None:
    path = tmp_path / "new.db"
    with workers.ready(4, "create", path) as creators:
        for creator in creators:
            creator.tell("now")
        assert [creator.hear() for creator in creators] == [{"total": 3}] * 4
    assert [account.name for account in Ledger(path).datasets()] == ["adult"]


def test_children_forked_while_a_thread_charges_get_a_working_ledger(book: Ledger, workers: Workers) -> None:
    outcome = workers.run("fork_while_charging", book.path, 15)
    assert outcome["failed"] == 0
    assert outcome["by thread"] > 0
    assert outcome["charges"] == outcome["by thread"] + 15


@contextmanager
def strace(process: int, *options: object) -> Iterator[None]:
    """Watch the system calls of a process, which is under way again when this starts."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not on this machine")
    command = [program, "-y", "-qq", "-p", str(process), *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as watcher:
        while f"TracerPid:\t{watcher.pid}\n" not in Path(f"/proc/{process}/status").read_text():
            if watcher.poll() is not None:
                pytest.skip("this machine does not let tests trace a process")
            time.sleep(0.002)
        yield


def test_file_journal_and_folder_are_synced_before_noise_is_drawn(
    book: Ledger, tmp_path: Path, workers: Workers
) -> None:
    log = tmp_path / "trace.txt"
    calls = "trace=pwrite64,fsync,fdatasync,unlink,sendto"
    with (
        workers.start(1, "charge_then_draw", book.path) as (worker,),
        strace(worker.hear()["ready"], "-o", log, "-e", calls),
    ):
        worker.tell("now")
        assert worker.hear() == {"noise is drawn": True}
    steps = log.read_text().splitlines()
    folder, file = re.escape(str(book.path.parent)), re.escape(str(book.path))

    def last(pattern: str) -> int:
        return max((place for place, step in enumerate(steps) if re.search(pattern, step)), default=-1)

    order = [
        last(rf"sync\(\d+<{file}-journal>"),
        last(rf"pwrite64\(\d+<{file}>"),
        last(rf"sync\(\d+<{file}>"),
        last(rf'unlink\("{file}-journal"'),
        last(rf"sync\(\d+<{folder}>"),
        last("noise is drawn"),
    ]
    assert -1 not in order
    assert order == sorted(order)


def test_a_kill_at_any_system_call_of_a_charge_leaves_all_of_it_or_nothing(book: Ledger, workers: Workers) -> None:
    outcomes = []
    for call in ("openat", "pwrite64", "fdatasync", "close", "unlink"):
        for turn in itertools.count(1):
            before = book.budget("adult").spent
            drawn = charge_with_a_kill_at(book, workers, call, turn)
            spent = book.budget("adult").spent - before
            assert spent in (0, Fraction(1, 1000))
            if drawn:
                assert spent > 0
                break
            outcomes.append(spent)
    assert len(outcomes) > 20
    assert set(outcomes) == {0, Fraction(1, 1000)}, "the kills missed one side of the commit"


def charge_with_a_kill_at(book: Ledger, workers: Workers, call: str, turn: int) -> bool:
    """Kill a charge as it makes ``call`` on the ledger, its journal or its folder for the ``turn``-th time."""
    watched = f"-P{book.path}", f"-P{book.path}-journal", f"-P{book.path.parent}"
    kill = "-e", f"inject={call}:signal=SIGKILL:when={turn}"
    with (
        workers.start(1, "charge_then_draw", book.path) as (worker,),
        strace(worker.hear()["ready"], *watched, "-o", "/dev/null", *kill),
    ):
        worker.tell("now")
        return worker.hear() is not None
