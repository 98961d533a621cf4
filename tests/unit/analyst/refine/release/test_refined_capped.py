"""Facts about releases that count at most some rows of each person."""

import numpy as np
import pytest

import veilcube as vc

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 11), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(0).poisson(60, SCHEMA.shape)
UNIT = vc.Cube(SCHEMA, COUNTS).unit.person("patient_id", 3)
TOTAL = int(COUNTS.sum())
FEMALE = int(COUNTS[:, 0].sum())


def _release(strategy: object = "identity") -> vc.Release:
    return vc.release(vc.Cube(SCHEMA, COUNTS, unit=UNIT), epsilon=3, strategy=strategy)


@pytest.mark.parametrize("strategy", ["identity", "tree", vc.Marginals(2), vc.Adaptive()])
@pytest.mark.parametrize(
    "facts",
    [
        {"constraints": f"total = {TOTAL}"},
        {"constraints": f"2*total - {TOTAL} = {TOTAL}"},
        {"constraints": f"total >= {TOTAL}"},
        {"constraints": f"10 <= total <= {TOTAL}"},
        {"constraints": [f"count(sex = 'F') = {FEMALE}", f"count(sex = 'M') = {TOTAL - FEMALE}"]},
        {"B": "age", "c": COUNTS.sum(axis=1)},
    ],
)
def test_a_total_is_refused_unless_it_is_said_to_be_of_the_kept_rows(facts, strategy) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(vc.VeilcubeError, match=r"at most 3 rows per person.*kept_rows=True.*--kept-rows"):
        vc.refine(_release(strategy), **facts)
    refined = vc.refine(_release(strategy), **facts, kept_rows=True)
    assert refined.counted == refined.unrefined.counted
    assert "at most 3 rows per person" in (refined.counted or "")


@pytest.mark.parametrize(
    "fact", [f"count(sex = 'F') = {FEMALE}", f"total <= {TOTAL + 50}", "count(sex = 'F') <= 2*count(sex = 'M')"]
)
def test_other_facts_are_taken_and_the_line_about_the_cap_stays(fact: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    refined = vc.refine(_release(), fact)
    assert "at most 3 rows per person" in (refined.counted or "")
    refined.save(tmp_path / "r.veil")
    assert vc.open(tmp_path / "r.veil").counted == refined.counted


def test_the_word_is_kept_in_the_file_and_when_refined_again(tmp_path) -> None:  # type: ignore[no-untyped-def]
    refined = vc.refine(_release(), f"total = {TOTAL}", kept_rows=True)
    refined.save(tmp_path / "r.veil")
    again = vc.refine(vc.open(tmp_path / "r.veil"), f"count(sex = 'F') = {FEMALE}")
    assert again.count().value == pytest.approx(TOTAL)


def test_without_a_cap_nothing_needs_to_be_said() -> None:
    release = vc.release(vc.Cube(SCHEMA, COUNTS), epsilon=3)
    assert vc.refine(release, f"total = {TOTAL}").counted is None


def test_answers_have_no_rows_to_count() -> None:
    with pytest.raises(vc.VeilcubeError, match="kept_rows is about releases"):
        vc.refine({"A": 1.0}, "A = 1", covariance=1.0, kept_rows=True)  # type: ignore[call-overload]
