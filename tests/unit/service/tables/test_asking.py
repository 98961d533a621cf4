"""Protected questions over HTTP: charged to the key's name, remembered, and refused with what is left."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

import veilcube as vc
from support.datasets import add_visits, grant
from support.services import serving
from veilcube.service.access import Caller, Role
from veilcube.service.routes.tables import Asked, ask_table

HTML = {"accept": "text/html"}


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as found:
        add_visits(found)
        grant(found, "mara", "1")
        yield found


def spent(served, name: str = "visits") -> Fraction:
    return served.service.ledger.budget(name).spent


def test_a_question_is_charged_to_who_asks_and_asking_again_is_free_for_everybody(served) -> None:
    asked = {"where": "age BETWEEN 30 AND 39 AND sex = 'Female'", "epsilon": "0.1"}
    first = served.post("mara", "/tables/visits/count.json", asked)
    assert first["outcome"]["cost"] == "1/10"
    (charge,) = served.service.ledger.history("visits")
    assert (charge.analyst, charge.id) == ("mara", first["outcome"]["charge"])
    for name, where in (("mara", asked["where"]), ("cora", "sex = 'Female' AND age >= 30 AND age < 40")):
        again = served.post(name, "/tables/visits/count.json", {"where": where, "epsilon": "0.1"})
        assert again["outcome"] == first["outcome"] | {"cost": "0", "charge": None}
    assert spent(served) == Fraction(1, 10)
    assert (
        served.get("noor", "/tables/visits/remembered.json", where=asked["where"])["answer"]
        == first["outcome"]["answer"]
    )
    dearer = served.post("mara", "/tables/visits/count.json", asked | {"epsilon": "0.2"})
    assert dearer["outcome"]["cost"] == "1/5"


@pytest.mark.parametrize(
    ("kind", "asked", "near"),
    [
        ("count", {"where": {"job": "Care"}}, 800),
        ("count", {"where": {"age": {"from": 30, "to": 39}}}, 300),
        ("sum", {"column": "age"}, 47_400),
        ("mean", {"column": "age"}, 39.5),
        ("moment", {"powers": {"age": 2}}, 2_032_200),
        ("max", {"column": "age"}, 59),
        ("min", {"column": "age", "interval": "1/2"}, 20),
        ("quantile", {"column": "age"}, 39.5),
        ("quantile", {"column": "age", "rank": 600}, 39.5),
    ],
)
def test_every_kind_of_question_has_an_answer_near_the_truth(served, kind, asked, near) -> None:
    told = served.post("cora", f"/tables/visits/{kind}.json", asked | {"epsilon": "1"})
    assert told["outcome"]["answer"]["value"] == pytest.approx(near, rel=0.1, abs=3)
    assert told["outcome"]["cost"] == "1"


def test_groups_quantiles_and_steps(served) -> None:
    ask = lambda kind, **asked: served.post("cora", f"/tables/visits/{kind}.json", asked | {"epsilon": "1/4"})  # noqa: E731
    by_job = ask("marginal", by=["sex", "job"])["outcome"]["answer"]
    assert by_job["axes"] == {"sex": ["Female", "Male"], "job": ["Nurse", "Aide", "Judge"]}
    assert all(abs(one["value"] - 200) < 60 for one in by_job["answers"])
    found = ask("quantiles", column="age", quantiles=[0.1, 0.9])["outcome"]["answer"]
    assert len(found["rows"]) == len(found["answers"]) == 2
    steps = [
        {"where": "age < 40"},
        {"select": ["sex", "job"]},
        {"part": {"sex": "Male"}},
        {"region": [{"job": [[0, 1]]}]},
    ]
    before = spent(served)
    part = ask("count", steps=steps)["outcome"]
    assert abs(part["answer"]["value"] - 200) < 60
    other = ask("count", steps=[{"part": {"sex": "Female"}}])["outcome"]
    assert (part["cost"], other["cost"]) == ("1/4", "0")  # parts of one partition cost the dearest
    assert spent(served) - before == Fraction(1, 4)
    assert served.get("cora", "/tables/visits/learned.json", where="age < 40", by=["sex"])["axes"] == {
        "sex": ["Female", "Male"]
    }


def test_an_analyst_needs_a_share_and_meets_its_end_with_an_explanation(served) -> None:
    assert "no share" in served.post("noor", "/tables/visits/count.json", {"epsilon": "0.1"}, 403)["error"]["message"]
    served.post("otto", "/tables/visits/count.json", {"epsilon": "0.1"}, 403)
    served.post("mara", "/tables/visits/count.json", {"epsilon": "0.9"})
    told = served.post("mara", "/tables/visits/count.json", {"epsilon": "0.95", "where": "age < 30"}, 409)["error"]
    assert told["code"] == "budget_exceeded"
    assert "ask for epsilon '1/10' or less" in told["message"]
    assert "see /tables/visits/learned" in told["message"]
    assert told["share"]["left"] == "1/10"
    assert told["budget"]["left"] == "11/10"
    assert told["ask"] == ["cora"]
    assert "shares" not in told
    assert spent(served) == Fraction(9, 10)
    assert served.get("noor", told["free"]["learned"], where="age < 30")["cost"] == "0"
    everybody = served.post("cora", "/tables/visits/count.json", {"epsilon": 7, "where": "age < 30"}, 409)["error"]
    assert [share["analyst"] for share in everybody["shares"]] == ["mara"]


def test_an_analyst_sees_her_own_questions_charges_and_share_only(served) -> None:
    grant(served, "noor", "1")
    mine = served.post("mara", "/tables/visits/count.json", {"epsilon": "0.1"})
    served.post("noor", "/tables/visits/count.json", {"epsilon": "0.1", "where": "age < 30"})
    served.get("noor", f"/questions/{mine['id']}.json", 404)
    assert served.get("mara", f"/questions/{mine['id']}.json") == mine
    assert [one["analyst"] for one in served.get("noor", "/questions.json")["questions"]] == ["noor"]
    assert len(served.get("otto", "/questions.json")["questions"]) == 2
    told = served.get("noor", "/budgets/visits.json")
    assert [one["analyst"] for one in told["charges"]] == ["noor"]
    assert "shares" not in told
    served.get("noor", "/budgets/visits.json", 403, analyst="mara")
    everything = served.get("otto", "/budgets/visits.json")
    assert [one["analyst"] for one in everything["charges"]] == ["noor", "mara"]
    assert [one["analyst"] for one in served.get("otto", "/budgets/visits.json", analyst="mara")["charges"]] == ["mara"]
    assert served.get("otto", "/budgets/visits.json", since="2999-01-01")["charges"] == []
    assert {one["analyst"] for one in everything["shares"]} == {"mara", "noor"}
    served.get("mara", "/log.json", 403)
    log = served.get("otto", "/log.json")
    assert log["is_whole"] is True
    assert [one["who"] for one in log["entries"] if one["action"] == "ask"] == ["noor", "mara"]


def test_the_same_request_is_one_question_whatever_becomes_of_the_connection(served) -> None:
    asked = {"epsilon": "0.1", "fresh": True, "request": "mine-1"}
    first = served.post("mara", "/tables/visits/count.json", asked)
    assert served.post("mara", "/tables/visits/count.json", asked) == first
    assert spent(served) == Fraction(1, 10)
    another = asked | {"epsilon": "0.2"}
    assert "another question" in served.post("mara", "/tables/visits/count.json", another, 409)["error"]["message"]
    served.post("cora", "/tables/visits/count.json", asked)  # names of requests are one's own
    assert spent(served) == Fraction(2, 10)


def test_a_fresh_question_that_was_cut_short_is_not_paid_for_twice(served, monkeypatch) -> None:
    asked = {"epsilon": "0.1", "fresh": True, "request": "mine-1"}

    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    caller = Caller("key", "cora", Role.CURATOR)
    with monkeypatch.context() as patch:
        patch.setattr(type(served.service.questions), "end", broken)
        with pytest.raises(KeyboardInterrupt):
            ask_table("visits", "count", Asked(**asked), caller, served.service)
    assert "cut short" in served.post("cora", "/tables/visits/count.json", asked, 409)["error"]["message"]
    assert spent(served) == Fraction(1, 10)
    (open_one,) = served.get("cora", "/questions.json")["questions"]
    assert open_one["state"] == "open"


def test_askers_at_once_never_overspend_and_the_same_question_is_charged_once(served) -> None:
    served.service.ledger.create("last", "0.3")
    served.post("cora", "/datasets.json", {"name": "last", "file": "visits.csv", "schema": "people"}, 201)

    def ask(number: int) -> int:
        asked = {"epsilon": "0.1", "where": f"age < {30 + number // 2}"}
        return served.client.post("/tables/last/count.json", headers=served.headers("cora"), json=asked).status_code

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(ask, range(16)))
    assert set(codes) == {200, 409}
    assert spent(served, "last") == Fraction(3, 10)
    assert len(served.service.ledger.history("last").answers) == 3
    assert codes.count(200) == 6  # each of three questions was asked twice


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("count", {}), ("count", {"epsilon": 0}), ("count", {"epsilon": "1e999999"}), ("count", {"epsilon": -1}),
        ("count", {"epsilon": "0.1", "where": "DROP TABLE t"}),
        ("count", {"epsilon": "0.1", "where": "age > 99 AND age < 1"}), ("sum", {"epsilon": "0.1", "column": "job"}),
        ("sum", {"epsilon": "0.1"}), ("mean", {"epsilon": 1, "column": "no"}),
        ("count", {"epsilon": "0.1", "steps": [{}]}), ("count", {"epsilon": "0.1", "steps": [{"part": {"sex": "x"}}]}),
        ("count", {"epsilon": "0.1", "steps": [{"region": [{"age": [[5, 999]]}]}]}), ("marginal", {"epsilon": "0.1"}),
        ("count", {"epsilon": "0.1", "rho": "0.1"}), ("count", {"rho": "0.1"}), ("count", {"epsilon": 1, "extra": 1}),
        ("count", {"epsilon": "0.1", "request": "../x"}), ("moment", {"epsilon": "0.1", "powers": {"age": 99}}),
        ("max", {"epsilon": "0.1", "column": "age", "by": ["sex"]}),
        ("quantile", {"epsilon": "0.1", "column": "age", "quantile": 2}),
        ("count", {"epsilon": "0.1", "confidence": 1}), ("exact", {"epsilon": "0.1"}),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_sentence_and_costs_nothing(served, kind, asked) -> None:
    answer = served.client.post(f"/tables/visits/{kind}.json", headers=served.headers("mara"), json=asked)
    assert answer.status_code in (409, 422), answer.text
    assert "\n" not in answer.json()["error"]["message"]
    assert spent(served) == 0


def test_no_page_for_analysts_tells_the_number_of_rows(served) -> None:
    for path in ("/datasets", "/datasets/visits", "/tables/visits", "/budgets", "/budgets/visits", "/questions"):
        told = served.client.get(f"{path}.json", headers=served.headers("mara")).text
        assert "1200" not in told
    served.get("mara", "/tables/visits/remembered.json", 404)
    served.get("mara", "/tables/visits/learned.json", 409)


def test_a_budget_in_rho_pays_for_gaussian_noise_and_persons_are_protected(served) -> None:
    made = add_visits(served, "people", rho="0.5", person="person", max_rows=2, neighbours="replace")
    assert made["unit"].startswith("one person")
    told = served.post("cora", "/tables/people/count.json", {"rho": "0.05"})["outcome"]
    assert told["cost"] == "1/20"
    assert "rho = 0.05" in told["answer"]["privacy"]
    assert abs(told["answer"]["value"] - 800) < 40  # at most two rows of each of 400 persons
    assert served.get("cora", "/tables/people.json")["share"] is None


@pytest.mark.parametrize(
    ("currency", "unit"), [("epsilon", {}), ("rho", {}), ("epsilon", {"person": "person", "max_rows": 3})]
)
def test_a_forecast_is_the_price_at_which_a_count_lies_within_the_error(served, currency, unit) -> None:
    made = add_visits(served, "other", **{currency: "100"}, **unit)
    price = made["forecast"]["price"]
    found = served.post("cora", "/tables/other/count.json", {currency: price})["outcome"]["answer"]
    half = (found["high"] - found["low"]) / 2
    assert half <= 50 < half * 1.03


def test_people_ask_with_a_form_and_see_the_answer_on_its_page(served) -> None:
    token = served.sign_in("mara")
    form = {
        "kind": "count",
        "where": "age < 30",
        "epsilon": "0.1",
        "column": "",
        "by": "",
        "quantile": "",
        "csrf": token,
    }
    answer = served.client.post("/tables/visits/ask", data=form, headers=HTML, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    page = served.client.get(answer.headers["location"], headers=HTML).text
    assert "It cost 1/10, as charge 1" in page
    assert served.client.post("/tables/visits/ask", data=form | {"csrf": "x"}, headers=HTML).status_code == 403
    refused = served.client.post("/tables/visits/ask", data=form | {"epsilon": "5"}, headers=HTML)
    assert refused.status_code == 409
    assert "was refused and nothing charged" in refused.text
    for path in (
        "/",
        "/datasets",
        "/datasets/visits",
        "/tables",
        "/tables/visits",
        "/questions",
        "/budgets",
        "/budgets/visits",
    ):
        page = served.client.get(path, headers=HTML)
        assert page.status_code == 200, path
        assert "<h1>" in page.text
    assert served.client.get("/log", headers=HTML).status_code == 403
    assert spent(served) == Fraction(1, 10)


def test_scripts_in_names_labels_and_questions_stay_text(served) -> None:
    evil = "<script>alert(1)</script>"
    schema = vc.Schema([vc.Nominal(evil, ["<img src=x onerror=alert(2)>", "b"])])
    (served.service.settings.below("data") / "evil.csv").write_text(f"{evil}\n" + "b\n" * 9, encoding="utf-8")
    served.post("cora", "/schemas.json", {"name": "evil", "toml": schema.to_toml()}, 201)
    served.post("cora", "/datasets.json", {"name": "evil", "file": "evil.csv", "schema": "evil", "epsilon": 9}, 201)
    asked = served.post("cora", "/tables/evil/marginal.json", {"epsilon": 1, "by": [evil]})
    served.sign_in("cora")
    for path in ("/datasets", "/datasets/evil", "/tables/evil", "/questions"):
        page = served.client.get(path, headers=HTML).text
        assert "&lt;script&gt;" in page, path
        assert "<script>alert" not in page
    page = served.client.get(f"/questions/{asked['id']}", headers=HTML).text + served.client.get("/budgets/evil").text
    assert "&lt;img src=x" in page
    assert "<img src=x" not in page


def test_boxes_that_overlap_count_no_row_twice(served) -> None:
    box, paid = {"age": [[0, 9], [5, 20]]}, {"epsilon": "0.1", "fresh": True}
    once, often = (
        served.post("mara", "/tables/visits/count.json", {"steps": [{"region": boxes}], **paid})
        for boxes in ([box], [box] * 500)
    )
    assert abs(once["outcome"]["answer"]["value"] - often["outcome"]["answer"]["value"]) < 600  # noise of 14 each
    assert often["outcome"]["cost"] == "1/10"
