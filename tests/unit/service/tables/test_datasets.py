"""Datasets lie on the server's side: curators register them, and nothing else of the machine can be named."""

import os
from concurrent.futures import ThreadPoolExecutor, wait

import duckdb
import pytest

import veilcube as vc
from support.datasets import SCHEMA, add_visits, grant, visits
from support.services import serving
from veilcube.service.routes import datasets


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path / "service", sources={"outside": str(tmp_path / "outside.csv")}) as found:
        yield found


def test_a_dataset_is_registered_once_with_its_budget_and_stays_what_it_is(served) -> None:
    made = add_visits(served)
    assert made["budget"]["left"] == "2"
    again = {"name": "visits", "file": "visits.csv", "schema": "people", "epsilon": "2"}
    assert "already" in served.post("cora", "/datasets.json", again, 409)["error"]["message"]
    assert vc.Ledger(served.service.settings.folder / "ledger.db").budget("visits").total == 2
    told = served.get("mara", "/datasets/visits.json")
    assert vc.Schema.from_dict(told["schema"]) == SCHEMA
    assert not {"source", "shares", "table"} & set(told)
    assert served.get("cora", "/datasets/visits.json")["source"] == "file:visits.csv"


def test_of_two_who_register_a_name_at_once_the_second_is_not_given_the_first_ones_rows(served, monkeypatch) -> None:
    add_visits(served)
    (served.service.settings.below("data") / "bad.csv").write_text("age,sex,job\n4711,Male,Judge\n", encoding="utf-8")
    good, bad = (
        {"name": "new", "file": file, "schema": "people", "epsilon": "1"} for file in ("visits.csv", "bad.csv")
    )
    real, second = datasets.open_budget, []
    with ThreadPoolExecutor(1) as pool:

        def meanwhile(*given: object) -> None:
            if not second:
                second.append(pool.submit(served.post, "cora", "/datasets.json", bad, 409))
                wait(second, 1)
            real(*given)

        monkeypatch.setattr(datasets, "open_budget", meanwhile)
        served.post("cora", "/datasets.json", good, 201)
        second[0].result()
    assert served.get("cora", "/datasets/new.json")["source"] == "file:visits.csv"


def test_datasets_and_shares_are_for_curators(served) -> None:
    add_visits(served)
    wish = {"name": "mine", "file": "visits.csv", "schema": "people", "epsilon": "2"}
    for name in ("mara", "otto"):
        served.post(name, "/datasets.json", wish, 403)
        served.post(name, "/datasets/check.json", wish, 403)
        served.post(name, "/datasets/visits/shares.json", {"analyst": name, "epsilon": "2"}, 403)
    assert [one["name"] for one in served.get("mara", "/datasets.json")["datasets"]] == ["visits"]
    assert "files" not in served.get("mara", "/datasets.json")
    assert served.get("cora", "/datasets.json")["files"] == ["visits.csv"]


@pytest.mark.parametrize(
    "file",
    ["../service.db", "/etc/passwd", "a/../../service.db", "*.csv", "visits.csv\u0000", "~/x.csv", ".hidden.csv", "",
     "file:///etc/passwd", "duckdb:///x.db", "visits.csv ", "a//b.csv", "nothing.csv", "link.csv", "linked/visits.csv",
     "pipe.csv", "folder"],
)  # fmt: skip
def test_a_file_is_named_below_the_data_folder_or_not_at_all(served, file, tmp_path) -> None:
    add_visits(served)
    data = served.service.settings.below("data")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "visits.csv").write_text(visits(), encoding="utf-8")
    (data / "link.csv").symlink_to(tmp_path / "outside" / "visits.csv")
    (data / "linked").symlink_to(tmp_path / "outside")
    (data / "folder").mkdir()
    os.mkfifo(data / "pipe.csv")
    wish = {"name": "other", "file": file, "schema": "people", "epsilon": "1"}
    answer = served.client.post("/datasets.json", json=wish, headers=served.headers("cora"))
    assert answer.status_code in (400, 422), answer.text
    assert [one["name"] for one in served.get("cora", "/datasets.json")["datasets"]] == ["visits"]
    assert served.get("cora", "/datasets.json")["files"] == ["visits.csv"]


def test_a_table_in_a_database_is_named_and_never_a_query(served) -> None:
    add_visits(served)
    data = served.service.settings.below("data")
    with duckdb.connect(str(data / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{data / 'visits.csv'}')")
    wish = {"name": "clinic", "file": "clinic.duckdb", "schema": "people", "epsilon": "1"}
    for table in ("SELECT * FROM read_csv('/etc/passwd')", "a; b", "read_csv('x')", ""):
        served.post("cora", "/datasets.json", wish | {"table": table}, 422)
    served.post("cora", "/datasets.json", wish | {"table": "visits"}, 201)
    found = served.post("cora", "/tables/clinic/count.json", {"epsilon": "1"})["outcome"]["answer"]
    assert abs(found["value"] - 1200) < 30


def test_a_source_that_the_operator_declared_keeps_its_address_to_itself(served, tmp_path) -> None:
    (tmp_path / "outside.csv").write_text(visits(), encoding="utf-8")
    (served.service.settings.folder / "sources.toml").write_text('clinic = "postgresql://u:secret@nowhere/clinic"\n')
    served.post("cora", "/schemas.json", {"name": "people", "toml": SCHEMA.to_toml()}, 201)
    wish = {"name": "far", "declared": "outside", "schema": "people", "epsilon": "1"}
    served.post("cora", "/datasets.json", wish, 201)
    assert served.get("cora", "/datasets.json")["declared"] == ["clinic", "outside"]
    assert "no source" in served.post("cora", "/datasets.json", wish | {"declared": "x"}, 400)["error"]["message"]
    everything = str(served.get("cora", "/datasets.json")) + str(served.get("cora", "/datasets/far.json"))
    assert "secret" not in everything
    assert str(tmp_path) not in everything


def test_a_row_that_does_not_fit_is_refused_to_the_curator_and_leaves_nothing(served) -> None:
    add_visits(served)
    data = served.service.settings.below("data")
    (data / "odd.csv").write_text(visits() + "4711,Female,Nurse,p\n", encoding="utf-8")
    wish = {"name": "odd", "file": "odd.csv", "schema": "people", "epsilon": "1"}
    refused = served.post("cora", "/datasets.json", wish, 422)["error"]
    assert refused["code"] == "table"
    assert "4711" not in refused["message"]
    found = served.post("cora", "/datasets/check.json", wish)
    assert found["fits"] is False
    assert "4711" not in str(found)
    assert [one.name for one in vc.Ledger(served.service.settings.folder / "ledger.db").datasets()] == ["visits"]
    served.get("mara", "/tables/odd.json", 404)


def test_a_table_that_is_gone_after_a_restart_is_explained_to_nobody_but_curators(served, tmp_path) -> None:
    add_visits(served)
    grant(served, "mara", "1")
    (served.service.settings.below("data") / "visits.csv").unlink()
    with serving(tmp_path / "service") as again:
        told = again.post("mara", "/tables/visits/count.json", {"epsilon": "0.1"}, 503)["error"]
        assert told["code"] == "unavailable"
        assert "visits.csv" not in told["message"]
        assert again.service.ledger.budget("visits").spent == 0


def test_shares_are_in_the_currency_of_the_budget_and_never_more_than_all_of_it(served) -> None:
    add_visits(served)
    assert grant(served, "mara", "1/2")["left"] == "1/2"
    for wish, status in (({"epsilon": 3}, 409), ({"rho": 0.1}, 409), ({}, 422), ({"epsilon": "x"}, 422)):
        served.post("cora", "/datasets/visits/shares.json", {"analyst": "mara", **wish}, status)
    assert served.get("mara", "/datasets/visits.json")["share"]["total"] == "1/2"
    assert served.get("noor", "/datasets/visits.json")["share"] is None
