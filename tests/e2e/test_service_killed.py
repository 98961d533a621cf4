"""A service that is killed under load: every answer that left was charged, and nothing was charged twice."""

import random
import threading
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import httpx
import pytest

import veilcube as vc
from support.datasets import SCHEMA, visits
from support.served_processes import Process, start_service

PRICE = Fraction(1, 1000)
CLIENTS = 3


class Load:
    """Clients that ask ever new questions, each sent again under its name until it has an outcome."""

    def __init__(self, key: str) -> None:
        self.headers = {"Authorization": f"Bearer {key}"}
        self.url, self.is_over = "", False
        self.left: dict[str, float] = {}
        self.codes: Counter[int] = Counter()
        self._turn, self._next = threading.Lock(), iter((a, b) for a in range(20, 60) for b in range(a, 60))
        self._threads = [threading.Thread(target=self._ask_on) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.is_over = True
        for thread in self._threads:
            thread.join()

    def _ask_on(self) -> None:
        with httpx.Client(headers=self.headers, timeout=120, verify=False) as client:
            while not self.is_over:
                with self._turn:
                    low, high = next(self._next)
                self._ask(client, f"age BETWEEN {low} AND {high}", f"q-{low}-{high}")

    def _ask(self, client: httpx.Client, where: str, name: str) -> None:
        asked = {"epsilon": str(PRICE), "where": where, "fresh": True, "request": name}
        while not self.is_over:
            try:
                answer = httpx.post(
                    f"{self.url}/tables/visits/count.json", json=asked, headers=self.headers, timeout=60
                )
            except httpx.HTTPError:
                time.sleep(0.02)  # it was killed: ask again, under the same name
                continue
            with self._turn:
                self.codes[answer.status_code] += 1
                if answer.status_code == 200:
                    self.left[name] = answer.json()["outcome"]["answer"]["value"]
            return


def prepared(folder: Path) -> tuple[Process, str]:
    """Start a service for the first time, with a dataset of a large budget."""
    service = start_service(folder, "--requests-per-second", "100000")
    assert service.key is not None
    (folder / "data" / "visits.csv").write_text(visits(), encoding="utf-8")
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.key}"}, timeout=120) as client:
        client.post("/schemas.json", json={"name": "people", "toml": SCHEMA.to_toml()}).raise_for_status()
        wish = {"name": "visits", "file": "visits.csv", "schema": "people", "epsilon": "1000"}
        client.post("/datasets.json", json=wish).raise_for_status()
    return service, service.key


def check(folder: Path, load: Load, kills: int) -> None:
    ledger = vc.Ledger(folder / "ledger.db")
    history = ledger.history("visits")
    purposes = Counter(charge.purpose for charge in history)
    assert set(purposes.values()) <= {1}, purposes.most_common(3)  # nothing was charged twice
    assert ledger.budget("visits").spent == len(history) * PRICE
    words = {charge.id: charge.purpose for charge in history}
    stored = {words[answer.charge]: answer.values[0] for answer in history.answers if answer.charge is not None}
    assert len(stored) == len(history.answers)
    for name, value in load.left.items():
        _, low, high = name.split("-")
        ages = f"{low}..{high}" if low != high else low
        purpose = "count of all rows" if (low, high) == ("20", "59") else f"count of rows where age is {ages}"
        assert stored[purpose] == value  # what left was charged and stored
    assert len(history) - len(stored) <= kills  # one question at a time is between charge and answer
    assert set(load.codes) <= {200, 409}
    assert load.codes[409] <= kills * CLIENTS


def kill_under_load(folder: Path, kills: int) -> None:
    service, key = prepared(folder)
    chance, load = random.Random(5), Load(key)
    load.url = service.url
    try:
        for _ in range(kills):
            before = len(load.left)
            deadline = time.monotonic() + 120
            while len(load.left) < before + chance.randint(1, 8) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.1))
            service.kill()
            service = start_service(folder, "--requests-per-second", "100000")
            load.url = service.url
        load.end()
        assert service.stop() in (0, 143)
    finally:
        load.is_over = True
        service.child.kill()
    assert len(load.left) > kills
    check(folder, load, kills)


def test_a_service_that_is_killed_charges_every_answer_and_none_twice(tmp_path: Path) -> None:
    kill_under_load(tmp_path / "served", 4)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_service_that_is_killed_fifty_times_charges_every_answer_and_none_twice(tmp_path: Path) -> None:
    kill_under_load(tmp_path / "served", 50)
