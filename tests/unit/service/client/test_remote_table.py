"""A protected table of a service is asked as a local one is: the same calls, and the same ledger rows."""

from datetime import date

import numpy as np
import pytest

import veilcube as vc
from support.datasets import SCHEMA, add_visits, grant
from support.services import serving
from veilcube.errors import BudgetExceededError, QueryError
from veilcube.service.client.connection import Connection
from veilcube.service.client.transport import Transport


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "service") as found:
        add_visits(found, epsilon="100")
        grant(found, "mara", "100")
        yield found


@pytest.fixture
def connection(served, monkeypatch):
    transport = Transport("http://testserver", served.keys["mara"])
    served.client.headers["Authorization"] = f"Bearer {served.keys['mara']}"
    monkeypatch.setattr(transport, "_client", served.client)
    return Connection(transport)


CALLS = [
    lambda t: t.noisy_count(epsilon=1),
    lambda t: t.where({"age": (30, 39)}).where(sex="Female").noisy_count(epsilon="1/2", confidence=0.5),
    lambda t: t.where({"age": [20, (30, 35)], "job": "Care"}).noisy_sum("age", epsilon=1),
    lambda t: t.where("age > 30 OR sex = 'Male'").select("age", "sex").noisy_mean("age", epsilon=1),
    lambda t: t.noisy_moment({"age": 2}, epsilon=1),
    lambda t: t.noisy_marginal("job", "sex", epsilon=1),
    lambda t: t.partition(["sex"]).noisy_mean("age", epsilon=1),
    lambda t: t.partition("job").noisy_sum("age", epsilon=1),
    lambda t: t.partition("sex", "job")["Male", "Judge"].noisy_count(epsilon=1),
    lambda t: t.partition("job:level 1", "sex").noisy_count(epsilon=1),
    lambda t: t.partition("job:Level 1")["Care"].noisy_mean("age", epsilon=1),
    lambda t: t.partition("age")[30].noisy_count(epsilon=1),
    lambda t: t.noisy_max("age", epsilon=1, interval="1/2"),
    lambda t: t.noisy_min("age", epsilon=1, method="exponential"),
    lambda t: t.noisy_quantile("age", 0.25, epsilon=1),
    lambda t: t.noisy_quantile("age", rank=10, epsilon=1),
    lambda t: t.noisy_quantiles("age", [0.1, 0.5], epsilon=1),
]


def test_what_the_service_stored_is_what_a_local_table_on_its_ledger_recalls(served, connection) -> None:
    remote = connection.table("visits")
    folder = served.service.settings.folder
    local = vc.protect(folder / "data" / "visits.csv", SCHEMA, folder / "ledger.db", "visits")
    assert remote.schema == local.schema
    for call in CALLS:
        before, told = remote.budget.spent, call(remote)
        assert remote.budget.spent > before
        again = call(local)  # free: it is the same question
        assert type(told) is type(again)
        for name in ("value", "low", "high"):
            assert np.all(getattr(told, name) == getattr(again, name)), name
        assert told.privacy == again.privacy
        assert getattr(told, "axes", None) == getattr(again, "axes", None)
        assert np.all(np.equal(getattr(told, "rows", 0), getattr(again, "rows", 0)))
    assert local.budget.spent == remote.budget.spent
    assert {charge.analyst for charge in served.service.ledger.history("visits")} == {"mara"}
    assert remote.share.spent == remote.budget.spent


def test_refusals_are_those_of_a_local_table(connection) -> None:
    table = connection.table("visits")
    assert connection.tables() == ["visits"]
    assert str(list(table.partition("sex"))) == "['Female', 'Male']"
    with pytest.raises(QueryError, match="has no hierarchy, so it has no levels"):
        table.partition("sex:Level 1")
    with pytest.raises(BudgetExceededError, match="was refused and nothing charged"):
        table.noisy_count(epsilon=500)
    for wrong in (
        lambda: table.where("age > 30 GROUP BY sex"),
        lambda: table.where("age > 30", sex="Male"),
        table.select,
        lambda: table.select("age").where(sex="Male"),
        lambda: table.partition("sex")["a", "b"],
        lambda: table.noisy_count(epsilon=1, confidence=2),
        lambda: table.noisy_count(epsilon=1, fresh="yes"),
        lambda: table.noisy_sum("no", epsilon=1),
        lambda: table.partition("sex")["x"].noisy_count(epsilon=1),
        table.noisy_count,
        lambda: connection.table("other"),
    ):
        with pytest.raises(vc.VeilcubeError):
            wrong()
    assert table.budget.spent == 0


def test_days_come_back_as_days(served, connection) -> None:
    schema = vc.Schema([vc.Ordinal("day", "2024-01-01", "2024-12-31")])
    (served.service.settings.below("data") / "days.csv").write_text("day\n" + "2024-03-05\n" * 50, encoding="utf-8")
    served.post("cora", "/schemas.json", {"name": "days", "toml": schema.to_toml()}, 201)
    served.post("cora", "/datasets.json", {"name": "days", "file": "days.csv", "schema": "days", "epsilon": 200}, 201)
    grant(served, "mara", 200, "days")
    table = connection.table("days")
    assert table.noisy_max("day", epsilon=90).value == date(2024, 3, 5)
    assert table.noisy_quantile("day", epsilon=90).value == date(2024, 3, 5)
    assert table.where({"day": (date(2024, 3, 1), date(2024, 3, 31))}).noisy_count(epsilon=1).value > 30


def test_a_lost_connection_after_the_charge_costs_nothing_more(served, connection, monkeypatch) -> None:
    from httpx import ReadError

    table, lost = connection.table("visits"), ["the first answer"]
    request = served.client.request

    def losing(method: str, *where: object, **what: object) -> object:
        answer = request(method, *where, **what)
        if method == "POST" and lost:
            lost.clear()
            raise ReadError("gone")
        return answer

    monkeypatch.setattr(served.client, "request", losing)
    answer = table.noisy_count(epsilon=1, fresh=True)
    assert lost == []
    assert table.budget.spent == 1
    (stored,) = served.service.ledger.history("visits").answers
    assert stored.values[0] == answer.value
