"""Programs that use a ledger, each in a process of its own, for tests of races and crashes; they answer in JSON.

One process imports veilcube, which takes seconds, and forks a process for each caller on its socket.
"""

import itertools
import json
import os
import random
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType

from support.statements import laplace_statement
from veilcube.curator.ledger import Ledger, charging, ledger
from veilcube.curator.ledger.stores import beside, file, queue
from veilcube.errors import BudgetExceededError

SMALL = Fraction(1, 1000)


def listen(address: str) -> None:
    """Fork a process for each caller, whose first line names the command and its arguments."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        report({"ready": os.getpid()})
        while True:
            caller, _ = server.accept()
            with caller:
                fork(lambda caller=caller: obey(caller))


def obey(caller: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.stdin = sys.stdout = caller.makefile("rw")
    command, *arguments = json.loads(sys.stdin.readline())
    try:
        COMMANDS[command](*arguments)
    except BaseException as problem:
        report({"problem": repr(problem)})
        raise


def serve(path: str) -> None:
    """Obey lines such as ``adult 1/10 5`` (charge adult with 1/10, five times) until the input ends."""
    book = Ledger(path, timeout=60)
    report({"ready": os.getpid()})
    for line in sys.stdin:
        dataset, epsilon, times = line.split()
        charges, refused = [], 0
        for _ in range(int(times)):
            try:
                receipt = book.charge(dataset, laplace_statement(epsilon), purpose="race", analyst=str(os.getpid()))
                charges.append(receipt.charge_id)
            except BudgetExceededError:
                refused += 1
        report({"charges": charges, "refused": refused})


def create(path: str) -> None:
    """Create a ledger as soon as told."""
    report({"ready": os.getpid()})
    sys.stdin.readline()
    report({"total": int(Ledger(path, timeout=60).ensure("adult", 3).total)})


def publish(path: str, folder: Path, order: str = "charge first") -> None:
    """Charge, then write one answer named after its charge; ``answer first`` is the mistake that tests must notice."""
    if order == "answer first":
        write_answer(folder, len(Ledger(path).history()) + 1)
    receipt = Ledger(path, timeout=60).charge("adult", laplace_statement(SMALL), purpose="answer")
    receipt.redeem()
    if order == "charge first":
        write_answer(folder, receipt.charge_id)


def write_answer(folder: Path, number: int | None) -> None:
    unfinished = folder / f"{number}.unfinished"
    unfinished.write_text("an answer")
    unfinished.rename(folder / f"{number}.answer")


def kill_at_random(path: str, folder: str, kills: int) -> None:
    """Kill a child that publishes answers in a loop, again and again, and look at what is left each time."""
    longest_life = 4 * timed(lambda: publish(path, Path(folder)))
    hot_journals = 0
    for _ in range(kills):
        child = fork(lambda: endless(lambda: publish(path, Path(folder))))
        time.sleep(random.uniform(0, longest_life))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        hot_journals += Path(f"{path}-journal").exists()
        check_consistency(path, Path(folder))
    report({**check_consistency(path, Path(folder)), "hot journals": hot_journals})


def kill_at_every_line(path: str, folder: str, order: str) -> None:
    """Publish once for each line of code on the way, with the process killed right before that line."""
    for point in itertools.count(1):
        child = fork(partial(publish_until_line, point, path, Path(folder), order))
        outcome = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        left = check_consistency(path, Path(folder))
        if outcome != -signal.SIGKILL:
            return report({**left, "points": point, "exit code": outcome})
    return None


def publish_until_line(point: int, path: str, folder: Path, order: str) -> None:
    watched = {module.__file__ for module in (ledger, charging, file, beside, queue)} | {__file__}
    seen = 0

    def watch(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal seen
        if frame.f_code.co_filename not in watched:
            return None
        seen += event == "line"
        if seen == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return watch

    sys.settrace(watch)
    publish(path, folder, order)
    sys.settrace(None)


def check_consistency(path: str, folder: Path) -> dict[str, int]:
    """Raise unless every answer has its charge and the budget is the sum of the charges."""
    book = Ledger(path)
    charges = book.history("adult")
    answers = {int(file.stem) for file in folder.glob("*.answer")}
    if not answers <= {charge.id for charge in charges}:
        raise AssertionError("an answer without a charge")
    if book.budget("adult").spent != sum(charge.epsilon for charge in charges):
        raise AssertionError("the budget is not the sum of the charges")
    return {"charges": len(charges), "answers": len(answers)}


def crash_in_transaction(path: str) -> None:
    """Die half-way through writing charges, with some pages of the file already overwritten."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size=1")
    connection.execute("PRAGMA cache_spill=1")
    connection.execute("BEGIN IMMEDIATE")
    for number in range(2, 200):
        connection.execute(
            "INSERT INTO charges (id, dataset, amount, neighbours, unit, statement, purpose, analyst, at) "
            "SELECT ?, dataset, amount, neighbours, unit, statement, ?, analyst, at FROM charges WHERE id = 1",
            (number, "half-way " * 100),
        )
    os.kill(os.getpid(), signal.SIGKILL)


def fork_while_charging(path: str, forks: int) -> None:
    """Fork while a thread is charging; each child charges once and must get through."""
    book = Ledger(path, timeout=60)
    stop = threading.Event()
    by_thread = []

    def keep_charging() -> None:
        while not stop.is_set():
            by_thread.append(book.charge("adult", laplace_statement(SMALL), purpose="thread").charge_id)

    thread = threading.Thread(target=keep_charging)
    thread.start()
    failed = 0
    for _ in range(forks):
        time.sleep(random.uniform(0, 0.01))
        child = fork(lambda: book.charge("adult", laplace_statement(SMALL), purpose="child"))
        failed += os.waitpid(child, 0)[1] != 0
    stop.set()
    thread.join()
    report({"failed": failed, "by thread": len(by_thread), "charges": len(book.history("adult"))})


def hold(path: str) -> None:
    """Keep everybody else out until the input ends."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    report({"ready": os.getpid()})
    sys.stdin.read()


def charge_then_draw(path: str) -> None:
    """As soon as told, charge once and then say what stands for the first random bit."""
    report({"ready": os.getpid()})
    sys.stdin.readline()
    Ledger(path).charge("adult", laplace_statement(SMALL), purpose="trace")
    report({"noise is drawn": True})


def fork(job: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        job()
    except BaseException as problem:
        os.write(2, f"{problem!r}\n".encode())
        os._exit(1)
    os._exit(0)


def endless(job: Callable[[], object]) -> None:
    while True:
        job()


def timed(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def report(facts: dict[str, object] | dict[str, int]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command
    for command in (
        serve,
        create,
        kill_at_random,
        kill_at_every_line,
        crash_in_transaction,
        fork_while_charging,
        hold,
        charge_then_draw,
    )
}

if __name__ == "__main__":
    listen(sys.argv[1])
