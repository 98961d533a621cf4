"""Releases as jobs: what was confirmed is charged, once, and a job that dies says what became of the budget."""

import json
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

import veilcube as vc
from support.datasets import SCHEMA, add_visits, grant
from support.services import serving
from veilcube.service.jobs import Keeper

HTML = {"accept": "text/html"}
PLAN = {"epsilon": "1/2", "strategy": "identity"}

# A worker that dies by its own hand, or waits, at a chosen moment.
DYING = """
import json, os, signal, sys, time
import veilcube.service.jobs.worker as worker
from veilcube.analyst import Release
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
def wait(*_, **__):
    print("waiting", flush=True)
    time.sleep(600)
moment = json.loads(sys.argv[1])
if moment == "before the charge":
    worker.locate = die
elif moment == "after the charge":
    Release.save = die
elif moment == "after it was saved":
    worker.publish = die
elif moment == "after it was published":
    worker.Jobs.end = die
elif moment == "never":
    worker.locate = wait
worker.main()
"""


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as found:
        add_visits(found)
        yield found


def over(served, job: dict) -> dict:
    """Wait until a job is over."""
    deadline = time.monotonic() + 300
    while not job["is_over"]:
        assert time.monotonic() < deadline, job
        time.sleep(0.05)
        job = served.get("cora", f"/jobs/{job['id']}.json")
    return job


def make(served, name: str, status: int = 202, **wish: object) -> dict:
    return served.post(
        "cora", "/datasets/visits/releases.json", {"name": name, "charge": "1/2", **PLAN, **wish}, status
    )


def test_what_was_planned_is_charged_and_the_release_appears(served) -> None:
    planned = served.get("cora", "/datasets/visits/plan.json", **PLAN, queries=["age > 30", "sex = 'Male'"])
    assert (planned["charge"], planned["left_after"]) == ("1/2", "3/2")
    assert len(planned["plan"]["queries"]) == 2
    assert served.service.ledger.budget("visits").spent == 0
    job = make(served, "first", queries=["age > 30", "sex = 'Male'"])
    assert job["state"] == "queued"
    done = over(served, job)
    assert done["state"] == "done", done
    assert done["charge"] == {"id": 1, "amount": "1/2", "currency": "epsilon", "words": "epsilon 0.5"}
    (charge,) = served.service.ledger.history("visits")
    assert (charge.analyst, charge.details.output, charge.amount) == ("cora", "first.veil", Fraction(1, 2))
    release = vc.open(served.service.shelf.files.path("first"))
    assert release.schema == SCHEMA
    assert "as charge 1" in str(release.privacy)
    assert str(release.privacy).startswith(planned["statement"].partition(" Charged")[0])
    assert abs(served.get("mara", "/releases/first/count.json")["value"] - 1200) < 700
    assert make(served, "first", 409)["error"]["code"] == "conflict"
    leftovers = served.service.settings.below("work")
    served.service.keeper.look()
    assert [path.name for path in leftovers.iterdir() if path.suffix == ".veil"] == []


def test_plans_of_datasets_and_jobs_are_for_curators_and_auditors_read_no_reasons(served) -> None:
    served.get("mara", "/datasets/visits/plan.json", 403)
    served.get("mara", "/jobs.json", 403)
    for name in ("mara", "otto"):
        served.post(name, "/datasets/visits/releases.json", {"name": "x", "charge": "1/2", **PLAN}, 403)
    (served.service.settings.below("data") / "visits.csv").write_text("age,sex,job\n4711,Female,Nurse\n")
    failed = over(served, make(served, "bad"))
    assert failed["state"] == "failed"
    assert "age" in failed["message"]
    assert "4711" not in failed["message"]
    assert failed["charge"] is None
    assert served.get("otto", f"/jobs/{failed['id']}.json")["message"] == "a curator sees why"
    served.get("mara", f"/jobs/{failed['id']}.json", 403)
    assert served.get("mara", "/releases.json")["releases"] == []


def test_a_release_that_was_not_confirmed_as_planned_is_not_queued(served) -> None:
    for wish, status in (
        ({"charge": "1/3"}, 409),
        ({"charge": "nonsense"}, 422),
        ({"epsilon": 3, "charge": 3}, 409),
        ({"epsilon": "", "rho": "0.05"}, 409),  # Gaussian noise has no price in epsilon
        ({"neighbours": "replace"}, 400),
        ({"person": "job", "max_rows": 2}, 400),
        ({"name": "../x"}, 422),
        ({"strategy": "magic"}, 422),
        ({"queries": ["DROP TABLE t"]}, 422),
    ):
        answer = served.client.post(
            "/datasets/visits/releases.json",
            json={"name": "x", "charge": "1/2", **PLAN, **wish},
            headers=served.headers("cora"),
        )
        assert answer.status_code == status, (wish, answer.text)
    assert served.service.ledger.budget("visits").spent == 0


def test_two_releases_for_the_last_of_the_budget_never_overspend_it(served) -> None:
    jobs = [make(served, name, epsilon="3/2", charge="3/2") for name in ("one", "two")]
    assert "being made already" in make(served, "two", 409, epsilon="3/2", charge="3/2")["error"]["message"]
    ended = sorted((over(served, job) for job in jobs), key=lambda job: job["state"])
    assert [job["state"] for job in ended] == ["done", "failed"]
    assert "refused and nothing charged" in ended[1]["message"]
    assert ended[1]["charge"] is None
    assert served.service.ledger.budget("visits").spent == Fraction(3, 2)


def test_a_budget_in_rho_is_charged_in_rho(served) -> None:
    add_visits(served, "other", rho="0.5")
    wish = {"epsilon": "1", "delta": "1e-9", "strategy": "identity"}
    planned = served.get("cora", "/datasets/other/plan.json", **wish)
    assert planned["currency"] == "rho"
    body = {"name": "noisy", "charge": planned["charge"], **wish}
    done = over(served, served.post("cora", "/datasets/other/releases.json", body, 202))
    assert done["state"] == "done", done
    assert served.service.ledger.budget("other").spent == Fraction(planned["charge"])


def started(served, job: int, moment: str) -> subprocess.Popen[str]:
    settings = served.service.settings
    told = {"folder": str(settings.folder), "ledger": None, "sources": {}, "job": job}
    command = [sys.executable, "-c", DYING, json.dumps(moment)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write(json.dumps(told))
    child.stdin.close()
    return child


@pytest.mark.parametrize(
    ("moment", "state", "paid"),
    [
        ("before the charge", "failed", None),
        ("after the charge", "failed", "1/2"),
        ("after it was saved", "done", "1/2"),
        ("after it was published", "done", "1/2"),
    ],
)
def test_a_job_that_is_killed_says_what_was_charged(served, moment, state, paid) -> None:
    service = served.service
    service.keeper.stop()
    job = make(served, "short")
    with started(served, job["id"], moment) as child:
        child.wait(300)
    assert child.returncode == -signal.SIGKILL
    assert served.get("cora", f"/jobs/{job['id']}.json")["state"] == "running"
    Keeper(service.settings, service.database, service.ledger).look()  # as the next start does
    told = served.get("cora", f"/jobs/{job['id']}.json")
    assert told["state"] == state, told
    assert (told["charge"] or {"amount": None})["amount"] == paid
    assert service.ledger.budget("visits").spent == Fraction(paid or 0)
    assert (served.get("mara", "/releases.json")["releases"] == ["short"]) == (state == "done")
    if state == "failed":
        assert ("nothing was charged" in told["message"]) == (paid is None)
        again = make(served, "short")  # the name is free again
        assert again["state"] == "queued"


@pytest.mark.parametrize("moment", ["before the charge", "after it was saved"])
def test_a_job_whose_name_was_taken_meanwhile_fails_and_keeps_no_other_from_starting(served, moment) -> None:
    service = served.service
    service.keeper.stop()
    job = make(served, "taken")
    with started(served, job["id"], moment) as child:
        child.wait(300)
    place = service.shelf.files.path("taken")
    place.write_text("another release")
    Keeper(service.settings, service.database, service.ledger).look()
    told = served.get("cora", f"/jobs/{job['id']}.json")
    assert told["state"] == "failed", told
    assert place.read_text() == "another release"
    saved = service.settings.below("work") / f"job-{job['id']}.veil"
    assert saved.exists() is (moment == "after it was saved") is (f"work/{saved.name}" in told["message"])


def test_a_job_outlives_its_service_and_is_left_alone_while_it_lives(served) -> None:
    service = served.service
    service.keeper.stop()
    job = make(served, "slow")
    with started(served, job["id"], "never") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        keeper = Keeper(service.settings, service.database, service.ledger)
        keeper.look()
        assert served.get("cora", f"/jobs/{job['id']}.json")["state"] == "running"
        child.kill()
    keeper.look()
    told = served.get("cora", f"/jobs/{job['id']}.json")
    assert told["state"] == "failed"
    assert told["charge"] is None


def test_people_plan_confirm_and_watch_without_any_script(served) -> None:
    token = served.sign_in("cora")
    page = served.client.get(
        "/datasets/visits/plan?epsilon=1/2&strategy=identity&rho=&error=&queries=&queries=age>30", headers=HTML
    )
    assert "Charge epsilon 0.5 and release" in page.text
    assert "epsilon 1.5 will be left" in page.text
    form = {
        "csrf": token,
        "name": "mine",
        "epsilon": "1/2",
        "strategy": "identity",
        "charge": "1/2",
        "queries": "age>30",
    }
    answer = served.client.post("/datasets/visits/releases", data=form, headers=HTML, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    number = answer.headers["location"].rpartition("/")[2]
    over(served, served.get("cora", f"/jobs/{number}.json"))
    assert "Charged epsilon 0.5, as charge 1" in served.client.get(f"/jobs/{number}", headers=HTML).text
    assert "mine" in served.client.get("/jobs", headers=HTML).text
    too_much = served.client.get("/datasets/visits/plan?epsilon=7&strategy=identity", headers=HTML).text
    assert "only epsilon 1.5 is left" in too_much
    assert "and release</button>" not in too_much
    grant(served, "mara", "1")
    assert served.client.get("/datasets/visits", headers=HTML).text.count("epsilon 1 left of 1") == 1
