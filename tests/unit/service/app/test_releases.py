"""Releases over HTTP: the answers are those of the library, and nothing but releases can be reached."""

import io
import json
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

import veilcube as vc
from support.services import serving

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 17, 90),
        vc.Nominal("sex", ["Female", "Male"]),
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}),
    ]
)
HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def local():
    counts = np.random.default_rng(3).integers(0, 60, SCHEMA.shape)
    return vc.release(vc.Cube(SCHEMA, counts), epsilon=2, strategy="identity")


@pytest.fixture(scope="module")
def served(tmp_path_factory, local):
    with serving(tmp_path_factory.mktemp("service")) as found:
        local.save(found.service.shelf.files.path("people"))
        yield found


def close(found: dict, answer) -> None:
    for name in ("value", "low", "high"):
        assert found[name] == pytest.approx(getattr(answer, name))


def test_every_question_has_a_url_with_the_librarys_answer(served, local) -> None:
    where = "age BETWEEN 30 AND 39 AND sex = 'Female'"
    get = lambda kind, **params: served.get("mara", f"/releases/people/{kind}.json", **params)  # noqa: E731
    close(get("count", where=where), local.count(where))
    close(
        get("count", where=where, confidence=0.5, interval="guaranteed"),
        local.count(where, confidence=0.5, interval="guaranteed"),
    )
    close(get("quantile", column="age", rank=0.25), local.quantile("age", 0.25))
    close(get("sum", column="age", where=where), local.sum("age", where=where))
    close(get("mean", column="age"), local.mean("age"))
    by_job = get("group", by=["job:Level 1", "sex"], statistic="mean", column="age")
    assert by_job["axes"] == {"job:Level 1": ["Care", "Law"], "sex": ["Female", "Male"]}
    assert by_job["answers"][3]["value"] == pytest.approx(
        local.mean("age", where="job = 'Law' AND sex = 'Male'").value, rel=1e-3
    )
    assert len(get("marginal", by=["sex", "age"])["answers"]) == 148
    assert len(get("cdf", column="age")["answers"]) == 74
    told = get("sql", statement="SELECT COUNT(*), AVG(age) AS years FROM t GROUP BY sex")["answers"]
    assert list(told) == ["COUNT(*)", "years"]


def test_many_queries_at_once_in_every_form(served, local) -> None:
    written = [
        {"age": {"from": 30, "to": 39}, "sex": "Female"},
        {"age": {"from": 80}, "job": ["Nurse", "Judge"]},
        {"job": "Care"},
        {"age": [17, {"from": 30, "to": 40}]},
        "age > 50 OR sex = 'Male'",
        {},
    ]
    python = [{"age": (30, 39), "sex": "Female"}, {"age": (80, None), "job": ["Nurse", "Judge"]}, {"job": "Care"}]
    python += [{"age": [17, (30, 40)]}, "age > 50 OR sex = 'Male'", {}]
    found = served.post("mara", "/releases/people/answer.json", {"queries": written})
    expected = local.answer(vc.Workload(SCHEMA, python))
    for name in ("value", "low", "high", "stddev"):
        assert found[name] == pytest.approx(getattr(expected, name).tolist())


def test_a_remote_release_gives_the_numbers_of_the_file_and_the_file_itself(
    served, local, tmp_path, monkeypatch
) -> None:
    from veilcube.service.client.connection import Connection
    from veilcube.service.client.transport import Transport

    transport = Transport("http://testserver", served.keys["mara"])
    served.client.headers["Authorization"] = f"Bearer {served.keys['mara']}"
    monkeypatch.setattr(transport, "_client", served.client)
    remote = Connection(transport).open("people")
    monkeypatch.setattr("veilcube.service.client.release._BATCH", 7)
    queries = [{"age": (20 + n, 40 + n)} for n in range(20)] + [
        "age = 17 OR sex = 'Male'",
        {"age": [17, 90]},
        "age > 90",
    ]
    workload = vc.Workload(SCHEMA, queries)
    for name in ("value", "low", "high", "stddev"):
        assert np.allclose(getattr(remote.answer(workload), name), getattr(local.answer(workload), name))
    assert remote.group("job:Level 1", "mean", "age").value == pytest.approx(
        local.group("job:Level 1", "mean", "age").value
    )
    assert str(remote.ask("SELECT MEDIAN(age) FROM t")) == str(local.ask("SELECT MEDIAN(age) FROM t"))
    remote.save(tmp_path / "people.veil")
    assert vc.open(tmp_path / "people.veil").record.plan == local.record.plan
    with pytest.raises(vc.VeilcubeError, match="no release called 'other'"):
        Connection(transport).open("other")
    with pytest.raises(vc.VeilcubeError, match="SQL text"):
        remote.mean("age", where={"sex": "Male"})


def test_tables_come_as_files_and_leave_nothing_behind(served, local) -> None:
    get = lambda ending, **params: served.client.get(  # noqa: E731
        f"/releases/people/table.{ending}", headers=served.headers("mara"), params=params
    )
    table = pd.read_csv(io.StringIO(get("csv", by="sex").text), comment="#")
    assert table["value"].tolist() == pytest.approx(local.marginal("sex").value.tolist(), rel=1e-3)
    frame = pd.read_parquet(io.BytesIO(get("parquet", by=["sex", "job"], whole=True).content))
    assert len(frame) == 6
    assert get("csv", by="nothing").status_code == 422
    assert list((served.service.settings.folder / "work").iterdir()) == []


@pytest.mark.parametrize(
    "where",
    ["DROP TABLE t", "SELECT age FROM t", "1=1; DELETE FROM t", "SELECT * FROM read_csv('/etc/passwd')", "age >",
     "no = 1",      "x" * 9000,      "age IN (SELECT 1)", "\ud800", "age = '\x00'", "'" * 99],
)  # fmt: skip
def test_sql_that_is_not_a_count_is_refused_in_a_sentence(served, where) -> None:
    answer = served.client.get(
        f"/releases/people/count.json?where={quote(where, errors='surrogatepass')}", headers=served.headers("mara")
    )
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["error"]["message"].count("\n") == 0
    headers = served.headers("mara") | {"content-type": "application/json"}
    body = served.client.post("/releases/people/answer.json", headers=headers, content=json.dumps({"queries": [where]}))
    assert body.status_code in (400, 422), body.text


@pytest.mark.parametrize(
    "name", ["../service", "..%2fservice", "%2e%2e", "people.veil%00", "people/../../service", ".hidden", "x" * 65,
     "a b",      "%5c..%5c"]
)  # fmt: skip
def test_a_name_is_no_path(served, name) -> None:
    for ending in (".json", ".veil", "/count.json", ""):
        answer = served.client.get(f"/releases/{name}{ending}", headers=served.headers("mara"))
        assert answer.status_code in (404, 422), answer.text
        assert str(served.service.settings.folder) not in answer.text


def test_a_link_out_of_the_folder_is_no_release(served, local, tmp_path) -> None:
    local.save(tmp_path / "outside.veil")
    link = served.service.shelf.files.folder / "linked.veil"
    link.symlink_to(tmp_path / "outside.veil")
    served.get("mara", "/releases/linked.json", 404)
    assert served.get("mara", "/releases.json")["releases"] == ["people"]
    link.unlink()


def test_scripts_in_names_and_labels_stay_text(served, tmp_path) -> None:
    evil = "<script>alert(1)</script>"
    schema = vc.Schema([vc.Nominal(evil, ["<img src=x onerror=alert(2)>", "b"])])
    vc.release(vc.Cube(schema, [30, 40]), epsilon=1).save(served.service.shelf.files.path("evil"))
    served.sign_in("mara")
    for path in (
        "/releases/evil",
        f"/releases/evil/marginal?by={quote(evil)}",
        f"/releases/evil/count?where={quote(evil)}",
    ):
        page = served.client.get(path, headers=HTML).text
        assert ("&lt;script&gt;" in page) == ("count" not in path)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
    served.client.cookies.clear()
    served.service.shelf.files.path("evil").unlink()


def test_a_release_that_was_replaced_is_read_anew_and_a_broken_one_is_said_to_be(served, local) -> None:
    path = served.service.shelf.files.path("again")
    local.save(path)
    before = served.get("mara", "/releases/again/count.json")["value"]
    vc.release(vc.Cube(SCHEMA, np.full(SCHEMA.shape, 500)), epsilon=2, strategy="identity").save(path)
    assert served.get("mara", "/releases/again/count.json")["value"] > 5 * before
    path.write_bytes(b"PK\x03\x04 nothing")
    assert served.get("mara", "/releases/again.json", 500)["error"]["code"] == "release_file"
    path.unlink()


def test_schemas_are_kept_for_good_and_plans_spend_nothing(served) -> None:
    toml = SCHEMA.to_toml()
    served.post("mara", "/schemas.json", {"name": "people", "toml": toml}, 403)
    made = served.post("cora", "/schemas.json", {"name": "people", "toml": toml}, 201)
    assert vc.Schema.from_dict(made["schema"]) == SCHEMA
    served.post("cora", "/schemas.json", {"name": "people", "data": SCHEMA.to_dict()}, 409)
    assert served.post("cora", "/schemas/check.json", {"name": "x", "data": SCHEMA.to_dict()})["cells"] == SCHEMA.cells
    wrong = served.post("cora", "/schemas/check.json", {"name": "x", "toml": "[[attribute"}, 422)["error"]
    assert wrong["code"] == "schema"
    assert "that was sent" in wrong["message"]
    plan = served.get(
        "mara", "/schemas/people/plan.json", epsilon="1/2", strategy="identity", queries=["age > 30", "sex = 'Male'"]
    )
    assert plan["epsilon"] == "1/2"
    assert len(plan["queries"]) == 2
    wanted = served.get("mara", "/schemas/people/plan.json", error=50, strategy="identity", queries="sex = 'Male'")
    assert wanted["half_width"] <= 50
    assert not (served.service.settings.folder / "ledger.db").exists()
