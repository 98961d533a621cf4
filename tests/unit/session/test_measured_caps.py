"""A cap that is measured: charged before its noise, stored and checked with the release, and answered for."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import veilcube as vc
from support.visits import MOST_ROWS, SCHEMA, heavy_users
from veilcube.errors import BudgetExceededError, LedgerError, PrivacyError, QueryError, ReleaseFileError, TableError

VISITS = heavy_users(1, patients=600)
OF_PERSON = {"schema": SCHEMA, "person": "patient", "max_rows": 4}
MEASURED = {**OF_PERSON, "measure_cap": "1/20", "most_rows": MOST_ROWS}


@pytest.fixture(scope="module")
def release() -> vc.Release:
    return vc.release(VISITS.table, 1, "identity", **MEASURED)


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("visits", 2)
    return ledger


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("promise", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-9}, {"rho": 0.1}])
@pytest.mark.parametrize("strategy", ["identity", "marginals", "staged tree", "grouped tables", "adaptive"])
def test_every_release_may_measure_its_cap_and_is_read_back(
    tmp_path: Path, neighbours: str, promise: dict[str, Any], strategy: str
) -> None:
    made = vc.release(VISITS.table, strategy=strategy, neighbours=neighbours, **promise, **MEASURED)
    made.save(tmp_path / "a.veil", tables=False)
    read = vc.open(tmp_path / "a.veil")
    assert read.record.cap is not None
    assert made.record.cap is not None
    assert read.record.cap.to_dict() == made.record.cap.to_dict()
    assert read.privacy == made.privacy
    assert read.plan["epsilon"] == made.plan["epsilon"]


def test_one_charge_pays_for_both_and_the_statement_tells_both(ledger: vc.Ledger) -> None:
    made = vc.release(VISITS.table, 1, "identity", ledger=ledger, dataset="visits", **MEASURED)
    (charge,) = ledger.history("visits")
    assert str(charge.epsilon) == str(made.privacy.epsilon) == "21/20"
    events = made.privacy.to_dict()["event"]
    assert isinstance(events, dict)
    assert [event["kind"] for event in events["events"]] == ["laplace", "parallel"]
    assert "cap.md#theorem-2" in made.privacy.proof
    with pytest.raises(BudgetExceededError):
        vc.release(VISITS.table, "19/20", "identity", ledger=ledger, dataset="visits", **MEASURED)
    assert len(ledger.history("visits")) == 1


def test_a_measured_cap_is_charged_and_says_where(ledger: vc.Ledger) -> None:
    found = vc.measure_cap(VISITS.table, SCHEMA, "patient", 0.5, ledger=ledger, dataset="visits", analyst="ana")
    (charge,) = ledger.history("visits")
    assert (str(charge.epsilon), charge.analyst) == ("1/2", "ana")
    assert found.privacy.charged_to is not None
    assert "all rows of each" in found.privacy.words
    vc.release(VISITS.table, 1, "identity", ledger=ledger, dataset="visits", **OF_PERSON)  # one unit, one account


def test_what_a_cap_keeps_is_near_the_truth_when_there_is_hardly_any_noise() -> None:
    found = vc.measure_cap(VISITS.table, SCHEMA, "patient", 1000, largest=80)
    for choice in found.choices:
        kept = np.minimum(VISITS.persons, choice.max_rows).sum() / VISITS.persons.sum()
        assert choice.rows.low <= kept <= choice.rows.high
        assert choice.persons.low <= (VISITS.persons <= choice.max_rows).mean() <= choice.persons.high
    share = np.minimum(VISITS.persons, found.recommended).sum() / VISITS.persons.sum()
    assert share > 0.9
    assert f"max_rows={found.recommended}" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["recommended"] == found.recommended
    assert "<table>" in found._repr_html_()


def test_all_rows_are_answered_from_every_door(release: vc.Release) -> None:
    alone = release.count(diagnosis="D0", rows="all")
    assert isinstance(alone, vc.Answer)
    workload = vc.Workload(SCHEMA, [{"diagnosis": "D0"}, {"diagnosis": ["D0", "D3"]}, "FALSE"])
    several = release.answer(workload, rows="all")
    grouped = release.marginal("diagnosis", rows="all")
    by_sql = release.count("SELECT COUNT(*) GROUP BY diagnosis", rows="all")
    assert isinstance(by_sql, vc.Answers)
    for other in (several[0], grouped[0], by_sql[0]):
        assert (other.value, other.low, other.high) == pytest.approx((alone.value, alone.low, alone.high))
    both = release.count(diagnosis=["D0", "D3"], rows="all")
    assert isinstance(both, vc.Answer)
    assert (several[1].low, several[1].high) == pytest.approx((both.low, both.high))
    assert (several[2].value, several[2].low, several[2].high) == (0, 0, 0)
    kept, guaranteed = release.count(diagnosis="D0"), release.count(diagnosis="D0", rows="all", interval="guaranteed")
    assert alone.low <= alone.value <= alone.high
    assert alone.high > kept.high + 100
    assert guaranteed.high >= kept.high
    assert release.count(rows="all").value >= release.count().value


def test_whoever_counts_rows_has_them_all() -> None:
    cube = vc.Cube(SCHEMA, VISITS.counts)
    made = vc.release(cube, 1, "identity")
    assert made.count(age=3, rows="all") == made.count(age=3)
    assert made.beyond_cap() is None


def test_a_release_that_did_not_measure_says_so(release: vc.Release) -> None:
    plain = vc.release(VISITS.table, 1, "identity", **OF_PERSON)
    with pytest.raises(QueryError, match="did not measure how many rows lie beyond"):
        plain.count(rows="all")
    with pytest.raises(QueryError, match="'kept' or 'all'"):
        release.count(rows="some")
    with pytest.raises(QueryError, match="add rows='all'"):
        release.count(spread=2)
    for wrong in (0.5, float("nan"), "2", True):
        with pytest.raises(QueryError):
            release.count(rows="all", spread=wrong)  # type: ignore[arg-type]


def test_a_broken_bound_is_told(release: vc.Release) -> None:
    good = release.beyond_cap()
    assert good is not None
    assert not good.is_bound_broken
    made = vc.release(VISITS.table, 1, "identity", **{**MEASURED, "measure_cap": 100, "most_rows": 30})
    found = made.beyond_cap()
    assert found is not None
    assert found.is_bound_broken
    assert "seem to have more than 30 rows" in str(found)
    assert found.persons_above.value == pytest.approx((VISITS.persons > 30).sum(), abs=1)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"most_rows": 9}, "goes with measure_cap"),
        ({"measure_cap": 1, "most_rows": 4}, "above the cap of 4"),
        ({"measure_cap": 0}, "above 0"),
        ({"measure_cap": 1001}, "at most 1,000"),
        ({"measure_cap": "x"}, "finite number"),
    ],
)
def test_wishes_that_cannot_be_cost_nothing(ledger: vc.Ledger, wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        vc.release(VISITS.table, 1, ledger=ledger, dataset="visits", **OF_PERSON, **wishes)
    assert ledger.history("visits") == []


def test_a_cap_without_persons_is_refused(ledger: vc.Ledger) -> None:
    account = {"ledger": ledger, "dataset": "visits"}
    with pytest.raises(PrivacyError, match="give person and max_rows"):
        vc.release(VISITS.table, 1, schema=SCHEMA, measure_cap=1, **account)
    with pytest.raises(PrivacyError, match="give person and max_rows"):
        vc.release(vc.Cube(SCHEMA, VISITS.counts), 1, measure_cap=1, **account)
    with pytest.raises(PrivacyError, match="person names the column"):
        vc.measure_cap(VISITS.table, SCHEMA, None, 1, **account)  # type: ignore[arg-type]
    with pytest.raises(TableError, match="no column 'nobody'"):
        vc.measure_cap(VISITS.table, SCHEMA, "nobody", 1, **account)
    with pytest.raises(LedgerError, match="go together"):
        vc.measure_cap(VISITS.table, SCHEMA, "patient", 1, ledger=ledger)
    for largest in (1, 0, 10**9, 2.5, True):
        with pytest.raises(vc.VeilcubeError):
            vc.measure_cap(VISITS.table, SCHEMA, "patient", 1, largest=largest, **account)  # type: ignore[arg-type]
    assert ledger.history("visits") == []


def test_a_counted_cube_keeps_what_is_needed() -> None:
    cube = vc.count(VISITS.table, SCHEMA, person="patient", max_rows=4)
    made = vc.release(cube, 1, "identity", measure_cap=1000, most_rows=MOST_ROWS)
    found = made.beyond_cap()
    assert found is not None
    assert found.rows.value == pytest.approx(np.maximum(VISITS.persons - 4, 0).sum(), abs=5)


def tampered(path: Path, out: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(out, "w") as after:
        for entry in before.infolist():
            content = before.read(entry)
            if entry.filename == "veil.json":
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest).encode()
            after.writestr(entry, content)
    return out


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["cap"].update(max_rows=3),
        lambda m: m["cap"].update(most_rows=61),
        lambda m: m["cap"].update(most_rows=10**9),
        lambda m: m["cap"].update(values=m["cap"]["values"][:-1]),
        lambda m: m["cap"]["values"].__setitem__(0, 1.5),
        lambda m: m["cap"]["values"].__setitem__(0, True),
        lambda m: m["cap"]["values"].__setitem__(0, 2**63),
        lambda m: m["cap"]["values"].__setitem__(0, -(2**62)),
        lambda m: m["cap"].update(ends=[1, 2]),
        lambda m: m["cap"]["noise"].__setitem__(0, {"kind": "discrete-laplace", "scale": "1/7"}),
        lambda m: m["cap"]["noise"].__setitem__(0, {"kind": "joint-discrete-laplace", "scale": "20"}),
        lambda m: m["cap"]["noise"].__setitem__(0, {"kind": "discrete-gaussian", "sigma_squared": "20"}),
        lambda m: m["cap"]["noise"].__setitem__(0, 7),
        lambda m: m["cap"].pop("noise"),
        lambda m: m.update(cap=[]),
        lambda m: m.update(cap=None),
        lambda m: m["privacy"].update(event=m["privacy"]["event"]["events"][0]),
        lambda m: m["privacy"]["event"]["events"].reverse(),
        lambda m: m["privacy"]["event"]["events"][1]["events"].pop(),
    ],
)
def test_a_file_whose_cap_was_changed_is_refused(
    release: vc.Release, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    release.save(tmp_path / "a.veil", tables=False)
    with pytest.raises(ReleaseFileError):
        vc.open(tampered(tmp_path / "a.veil", tmp_path / "b.veil", change))


def test_errors_about_the_table_are_told_before_the_charge(ledger: vc.Ledger) -> None:
    table = pa.table({"patient": [1, None], "age": [3, 4], "diagnosis": ["D0", "D1"]})
    with pytest.raises(TableError, match="missing values"):
        vc.measure_cap(table, SCHEMA, "patient", 1, ledger=ledger, dataset="visits")
    assert ledger.history("visits") == []
