"""Protected tables: what is asked is what is answered, paid for once, stored, and found again."""

import errno
import io
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import veilcube as vc
from support.protected import recorded_table
from veilcube.curator.cube import Cube
from veilcube.curator.protected import rows as rows_module
from veilcube.curator.protected.desk import Desk
from veilcube.curator.protected.rows import PrivateRows
from veilcube.curator.protected.table import ProtectedTable, private_view
from veilcube.curator.protected.view import View
from veilcube.errors import BudgetExceededError, CapacityError, LedgerError, PrivacyError, QueryError, TableError
from veilcube.laws import DiscreteLaplace
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Region
from veilcube.session.protecting import protect

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 17, 90, missing="cell"),
        vc.Nominal("sex", ["Female", "Male"]),
        vc.Ordinal("income", edges=[0, 10, 20.5, 50]),
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": ["Clerk"]}),
        vc.Ordinal("born", "1990", "1999", unit="year"),
    ]
)
RANDOM = np.random.default_rng(7)
ROWS = 3000
FRAME = {
    "age": [None if age == 91 else age for age in RANDOM.integers(17, 92, ROWS).tolist()],
    "sex": RANDOM.choice(["Female", "Male"], ROWS).tolist(),
    "income": RANDOM.uniform(0, 50, ROWS).tolist(),
    "job": RANDOM.choice(["Nurse", "Aide", "Clerk"], ROWS).tolist(),
    "born": RANDOM.integers(1990, 2000, ROWS).tolist(),
}
TABLE = pa.table(FRAME)
CUBE = vc.count(TABLE, SCHEMA)
AGES = np.array([0 if age is None else age for age in FRAME["age"]])
WOMEN = np.array(FRAME["sex"]) == "Female"
MIDDLES = np.array([5, 15.25, 35.25])[np.searchsorted([10, 20.5], FRAME["income"], side="right")]


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    return vc.Ledger(tmp_path / "budget.db")


@pytest.fixture
def table(ledger: vc.Ledger) -> ProtectedTable:
    return protect(CUBE, ledger=ledger, dataset="people", epsilon=100)


# What is asked


@pytest.mark.parametrize(
    ("narrow", "exact"),
    [
        (lambda table: table, ROWS),
        (lambda table: table.where("age BETWEEN 30 AND 39"), np.sum((AGES >= 30) & (AGES <= 39))),
        (lambda table: table.where({"sex": "Female"}), WOMEN.sum()),
        (lambda table: table.where(age=(30, 39)).where(sex="Female"), np.sum((AGES >= 30) & (AGES <= 39) & WOMEN)),
        (lambda table: table.where("age < 30 OR sex = 'Female'"), np.sum(((AGES < 30) & (AGES > 0)) | WOMEN)),
        (lambda table: table.where(age=None), np.sum(AGES == 0)),
        (lambda table: table.select("sex", "age").where(sex="Female").select("age"), WOMEN.sum()),
        (lambda table: table.partition("sex")["Female"], WOMEN.sum()),
        (lambda table: table.where("age >= 60").partition(["sex", "job"])["Male", "Clerk"], None),
    ],
)
def test_a_count_is_of_the_rows_in_view(narrow: object, exact: int | None) -> None:
    table, published = recorded_table(CUBE, "add-remove")
    if exact is None:
        exact = int(np.sum((AGES >= 60) & ~WOMEN & (np.array(FRAME["job"]) == "Clerk")))
    assert narrow(table).noisy_count(epsilon=1).value == exact
    assert published[-1].exact == (exact,)


def test_sums_moments_and_means_are_those_of_the_schema() -> None:
    table, _ = recorded_table(CUBE, "add-remove")
    assert table.noisy_sum("age", epsilon=1).value == AGES.sum()
    assert table.noisy_sum("income", epsilon=1).value == pytest.approx(MIDDLES.sum())
    assert table.noisy_moment({"age": 2, "income": 1}, epsilon=1).value == pytest.approx((AGES**2 * MIDDLES).sum())
    assert table.noisy_mean("age", epsilon=1).value == pytest.approx(AGES[AGES > 0].mean())
    assert table.where(sex="Female").noisy_mean("income", epsilon=1).value == pytest.approx(MIDDLES[WOMEN].mean())


def test_all_parts_at_once_are_labelled_in_the_order_that_was_asked_for() -> None:
    table, published = recorded_table(CUBE, "add-remove")
    counts = table.where("born <= '1995'").noisy_marginal("born", "sex", epsilon=1)
    assert list(counts.axes) == ["born", "sex"]
    assert counts.axes["born"] == ("1990", "1991", "1992", "1993", "1994", "1995")
    assert counts.value[2, 0] == np.sum((np.array(FRAME["born"]) == 1992) & WOMEN)
    swapped = table.where("born <= '1995'").partition("sex", "born").noisy_count(epsilon=1)
    assert (swapped.value == counts.value.T).all()
    assert len(published) == 2
    means = table.partition("sex").noisy_mean("income", epsilon=1)
    assert means.value == pytest.approx([MIDDLES[WOMEN].mean(), MIDDLES[~WOMEN].mean()])
    sums = table.partition("sex").noisy_sum("age", epsilon=1)
    assert sums.value.tolist() == [AGES[WOMEN].sum(), AGES[~WOMEN].sum()]


def test_a_narrower_domain_makes_less_noise() -> None:
    table, published = recorded_table(CUBE, "add-remove")
    table.noisy_sum("age", epsilon=1)
    table.where(age=(17, 30)).noisy_sum("age", epsilon=1)
    assert [part.scales for part in published] == [(Fraction(90),), (Fraction(30),)]


def test_sums_beyond_64_bits_stay_exact() -> None:
    schema = vc.Schema([vc.Ordinal("x", 2**40, 2**40 + 1)])
    table, _ = recorded_table(Cube(schema, [2**34, 2**35]), "add-remove")
    answer = table.noisy_sum("x", epsilon=1000)
    assert answer.value == float(2**34 * 2**40 + 2**35 * (2**40 + 1))


# Paid for, stored, found again


def test_an_answer_is_charged_stored_and_carries_its_promise(ledger: vc.Ledger) -> None:
    asker = protect(CUBE, ledger=ledger, dataset="people", epsilon=2, analyst="Ada")
    answer = asker.where(sex="Female").noisy_count(epsilon="1/2")
    history = ledger.history("people")
    (charge,), (stored,) = history, history.answers
    assert (charge.epsilon, charge.analyst) == (Fraction(1, 2), "Ada")
    assert "sex is Female" in charge.purpose
    assert stored.charge == charge.id
    assert stored.values == (answer.value,)
    assert stored.noise == DiscreteLaplace(Fraction(2))
    assert stored.statement == charge.statement
    assert answer.privacy == charge.statement.words
    assert answer.low < answer.value < answer.high
    assert ledger.budget("people").left == Fraction(3, 2)


def test_the_same_question_in_other_words_is_free(table: ProtectedTable, ledger: vc.Ledger) -> None:
    first = table.where("age < 30 OR sex = 'Female'").noisy_count(epsilon=1)
    again = table.where("sex = 'Female' OR (sex = 'Male' AND age < 30)").noisy_count(epsilon=1)
    assert first.value == again.value
    assert len(ledger.history("people")) == 1


def test_a_stored_answer_serves_who_asks_for_less_accuracy_but_not_for_more(
    table: ProtectedTable, ledger: vc.Ledger
) -> None:
    first = table.noisy_count(epsilon=1)
    assert table.noisy_count(epsilon="1/2").value == first.value
    assert ledger.budget("people").spent == 1
    table.noisy_count(epsilon=2)
    assert ledger.budget("people").spent == 3


def test_fresh_noise_is_drawn_and_charged_when_asked_for(table: ProtectedTable, ledger: vc.Ledger) -> None:
    values = {table.noisy_count(epsilon="1/10", fresh=True).value for _ in range(12)}
    assert len(values) > 1
    assert ledger.budget("people").spent == Fraction(12, 10)
    assert table.noisy_count(epsilon="1/10").value == ledger.history("people").answers[0].values[0]


def test_a_part_and_a_condition_are_the_same_question(table: ProtectedTable, ledger: vc.Ledger) -> None:
    part = table.partition("sex")["Female"].noisy_count(epsilon=1)
    assert table.where(sex="Female").noisy_count(epsilon=1).value == part.value
    assert len(ledger.history("people").answers) == 1


def test_other_sessions_find_stored_answers(ledger: vc.Ledger) -> None:
    first = protect(CUBE, ledger=ledger, dataset="people", epsilon=1, analyst="Ada").noisy_count(epsilon=1)
    second = protect(TABLE, SCHEMA, vc.Ledger(ledger.path), "people", analyst="Bob").noisy_count(epsilon=1)
    assert first.value == second.value


def test_no_answer_is_reused_for_another_unit_or_schema(tmp_path: Path) -> None:
    visits = pa.table({"id": [1, 1, 1, 2], "age": [20, 21, 22, 23]})
    schema, other = vc.Schema([vc.Ordinal("age", 17, 90)]), vc.Schema([vc.Ordinal("age", 17, 91)])
    ledger = vc.Ledger(tmp_path / "visits.db")
    for most, used in ((1, schema), (2, schema), (2, other)):
        protect(visits, used, ledger, "visits", 10, person="id", max_rows=most).noisy_count(epsilon=1)
    assert ledger.budget("visits").spent == 3


def test_what_fails_costs_nothing(table: ProtectedTable, ledger: vc.Ledger) -> None:
    for ask in (
        lambda: table.noisy_count(epsilon=0),
        lambda: table.noisy_count(epsilon=1, confidence=2),
        lambda: table.noisy_sum("job", epsilon=1),
        lambda: table.noisy_sum("born", epsilon=1),
        lambda: table.noisy_mean("wizard", epsilon=1),
        lambda: table.noisy_moment({"age": 0}, epsilon=1),
        lambda: table.noisy_moment({"age": 1, "AGE": 1}, epsilon=1),
        lambda: table.noisy_moment(["age"], epsilon=1),
        lambda: table.noisy_moment({"age": 16, "income": 16}, epsilon=1),
        lambda: table.noisy_marginal(epsilon=1),
        lambda: table.noisy_marginal("age", "age", epsilon=1),
        lambda: table.where("age > 200").noisy_count(epsilon=1),
        lambda: table.where("age = 30").noisy_mean("age", epsilon=1),
        lambda: table.where("SELECT sex, COUNT(*) FROM t GROUP BY sex"),
        lambda: table.where("age > 3", sex="Female"),
        lambda: table.select("age").where(sex="Female"),
        lambda: table.select("age").noisy_sum("income", epsilon=1),
        table.select,
        lambda: table.partition("job")["Care"],
        lambda: table.partition("job")["Wizard"],
        lambda: table.partition("job", "sex")["Nurse"],
    ):
        with pytest.raises((QueryError, PrivacyError)) as refusal:
            ask()
        assert "\n" not in str(refusal.value)
    assert ledger.history("people") == []


def test_over_budget_is_refused_whole_with_what_would_fit(ledger: vc.Ledger) -> None:
    table = protect(CUBE, ledger=ledger, dataset="people", epsilon=1)
    table.noisy_count(epsilon="7/10")
    with pytest.raises(BudgetExceededError, match=r"0\.3.*is left.*ask for epsilon '3/10' or less"):
        table.noisy_sum("age", epsilon="1/2")
    assert len(ledger.history("people")) == len(ledger.history("people").answers) == 1


def test_an_analyst_is_refused_beyond_their_share(ledger: vc.Ledger) -> None:
    ada = protect(CUBE, ledger=ledger, dataset="people", epsilon=1, analyst="Ada", analyst_epsilon="1/4")
    bob = protect(CUBE, ledger=ledger, dataset="people", analyst="Bob")
    ada.noisy_count(epsilon="1/4")
    with pytest.raises(BudgetExceededError, match=r"share of analyst 'Ada'.*whole budget of 0\.25"):
        ada.noisy_sum("age", epsilon="1/100")
    bob.noisy_sum("age", epsilon="1/2")
    with pytest.raises(LedgerError, match=r"Ledger\.allow"):
        protect(CUBE, ledger=ledger, dataset="people", analyst="Ada", analyst_epsilon="1/2")
    ledger.allow("people", "Ada", "1/3")
    ada.noisy_sum("income", epsilon="1/12")
    assert {share.analyst: share.budget.left for share in ledger.shares("people")} == {"Ada": 0}


def test_protect_says_what_it_needs(ledger: vc.Ledger) -> None:
    with pytest.raises(LedgerError, match="needs a ledger"):
        protect(CUBE)
    ledger.create("others", 1)
    with pytest.raises(LedgerError, match="no dataset 'people'"):
        protect(CUBE, ledger=ledger, dataset="people")
    with pytest.raises(LedgerError, match="name the analyst"):
        protect(CUBE, ledger=ledger, dataset="people", epsilon=1, analyst_epsilon=1)
    with pytest.raises(TableError, match="brings its own schema"):
        protect(CUBE, SCHEMA, ledger, "people", 1)
    with pytest.raises(TableError, match="needs its schema"):
        protect(TABLE, ledger=ledger, dataset="people", epsilon=1)
    with pytest.raises(PrivacyError, match="not known"):
        protect(CUBE, ledger=ledger, dataset="people", epsilon=1, neighbours="twins")


def test_nothing_private_is_shown(table: ProtectedTable) -> None:
    shown = repr(table) + repr(table.partition("sex")) + repr(private_view(table).desk.rows)
    assert str(ROWS) not in shown
    assert "Cube" not in shown


# Counting no further than needed


def test_wide_tables_count_the_attributes_that_a_question_mentions() -> None:
    names = [f"a{number}" for number in range(60)]
    wide = vc.Schema([vc.Ordinal(name, 0, 9) for name in names])
    values = np.random.default_rng(3).integers(0, 10, (70_000, 60))
    rows = PrivateRows(pa.table(dict(zip(names, values.T, strict=True))), wide, PrivacyUnit.row())
    region = Region.on_axis(wide.shape, 7, wide.attributes[7].mask(2, 5))
    found = rows.counts_within(region, [50, 3])
    inside = (values[:, 7] >= 2) & (values[:, 7] < 5)
    expected = np.zeros((10, 10), dtype=np.int64)
    np.add.at(expected, (values[inside, 50], values[inside, 3]), 1)
    assert (found == expected).all()
    assert rows.counts_within(Region.everything(wide.shape), []) == 70_000
    with pytest.raises(CapacityError, match="memory"):
        rows.require_room(range(12))


@pytest.mark.parametrize("unit", [PrivacyUnit.row(), PrivacyUnit.person("id", 2)])
def test_streamed_and_cubed_counts_agree(unit: PrivacyUnit, monkeypatch: pytest.MonkeyPatch) -> None:
    people = TABLE.append_column("id", pa.array(RANDOM.integers(0, 900, ROWS)))
    region = Region.on_axis(SCHEMA.shape, 0, SCHEMA["age"].mask(0, 20)).union(
        Region.on_axis(SCHEMA.shape, 3, SCHEMA["job"].mask(2, 3))
    )
    cubed = [PrivateRows(people, SCHEMA, unit).counts_within(region, axes) for axes in ([], [1], [3, 0])]
    monkeypatch.setattr(rows_module, "LARGEST_CUBE_KEPT", 0)
    streamed = [PrivateRows(people, SCHEMA, unit).counts_within(region, axes) for axes in ([], [1], [3, 0])]
    for ours, theirs in zip(cubed, streamed, strict=True):
        assert (ours == theirs).all()


# Read once, when it is protected


@pytest.fixture(params=["cube", "rows"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to keep a table: as a cube, and as the cells of its rows."""
    if request.param == "rows":
        monkeypatch.setattr(rows_module, "LARGEST_CUBE_KEPT", 0)
    return str(request.param)


@pytest.mark.usefixtures("kept")
def test_a_stream_that_can_be_read_once_answers_every_question(ledger: vc.Ledger) -> None:
    table = protect(TABLE.to_reader(), SCHEMA, ledger, "people", 100_000)
    assert table.noisy_count(epsilon=1000).value == pytest.approx(ROWS, abs=1)
    assert table.where(sex="Female").noisy_count(epsilon=1000).value == pytest.approx(WOMEN.sum(), abs=1)


BAD_ROWS = {
    "unknown code": {"sex": "X"},
    "outside": {"age": 200},
    "missing": {"income": None},
    "unreadable": {"born": "soon"},
}


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("change", BAD_ROWS.values(), ids=list(BAD_ROWS))
def test_a_row_that_does_not_fit_is_refused_before_anybody_asks(
    change: dict[str, object], ledger: vc.Ledger, tmp_path: Path
) -> None:
    good = {name: str(column[0]) for name, column in FRAME.items()} | {"age": "30"}
    bad = good | {name: "" if value is None else str(value) for name, value in change.items()}
    path = tmp_path / "people.csv"
    path.write_text("\n".join(",".join(row) for row in (good, good.values(), bad.values())) + "\n")
    with pytest.raises(TableError):
        protect(path, SCHEMA, ledger, "people", 100)
    with pytest.raises(LedgerError):
        ledger.budget("people")


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("later", ["age,sex\n31,Female\n30,X\n", "age,sex\n31,Female\n", "", None])
def test_a_file_that_changes_afterwards_changes_no_answer(later: str | None, ledger: vc.Ledger, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n" + "30,Male\n" * 50)
    table = protect(path, vc.Schema([SCHEMA["age"], SCHEMA["sex"]]), ledger, "people", 100_000)
    path.unlink() if later is None else path.write_text(later)
    for ask in (lambda: table.noisy_count(epsilon=1000), lambda: table.where(sex="Male").noisy_count(epsilon=1000)):
        assert ask().value == pytest.approx(50, abs=1)


def test_a_disk_that_is_full_is_told_to_the_curator(ledger: vc.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullDisk(io.BytesIO):
        def write(self, *_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(rows_module, "LARGEST_CUBE_KEPT", 0)
    monkeypatch.setattr(rows_module, "TemporaryFile", lambda **_: FullDisk())
    with pytest.raises(CapacityError, match="temporary disk space"):
        protect(TABLE, SCHEMA, ledger, "people", 100)


def test_a_promise_for_another_unit_is_refused(table: ProtectedTable, ledger: vc.Ledger) -> None:
    person = Cube(SCHEMA, CUBE.exact_counts, PrivacyUnit.person("id", 2))
    other, published = recorded_table(person, "add-remove")
    other.noisy_count(epsilon=1)
    with pytest.raises(PrivacyError, match="another unit"):
        private_view(table).measure(None, published[0].statement, lambda: [1])  # type: ignore[arg-type]
    assert isinstance(private_view(table).desk, Desk)
    assert ledger.history("people") == []


def test_what_an_analyst_holds_leads_to_no_private_row(table: ProtectedTable) -> None:
    parts = table.partition("sex")
    for face in (table, parts, parts["Female"], table.where(age=(30, 39))):
        assert not hasattr(face, "exact_counts_of")
        seen, left = set(), [face]
        while left:
            held = left.pop()
            assert not isinstance(held, View | Desk | PrivateRows | vc.Cube)
            if id(held) in seen or type(held).__module__.split(".")[0] != "veilcube":
                continue
            seen.add(id(held))
            names = [name for name in dir(held) if not name.startswith("__")]
            left += [value for value in (getattr(held, name, None) for name in names) if not callable(value)]


@pytest.mark.parametrize("limit", [2**24, 1])
def test_a_region_whose_boxes_overlap_counts_each_row_once(
    ledger: vc.Ledger, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(rows_module, "LARGEST_CUBE_KEPT", limit)
    table = protect(TABLE, SCHEMA, ledger, "people", 10_000)
    whole = Region.everything(SCHEMA.shape).boxes[0]
    for rows in (table.where(Region(SCHEMA.shape, (whole,) * 7)), table.where(Region(SCHEMA.shape, (whole,) * 3))):
        assert abs(rows.noisy_count(epsilon=100, fresh=True).value - ROWS) < 5
        assert abs(rows.noisy_marginal("sex", epsilon=100, fresh=True).value.sum() - ROWS) < 5
        (part,) = rows.partition(conditions={"all": Region(SCHEMA.shape, (whole,) * 2)}).items()
        assert abs(part[1].noisy_count(epsilon=100, fresh=True).value - ROWS) < 5
