"""What is learned and drawn from refined releases: the measurements and the facts."""

import warnings

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst import read_history

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 11), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(0).poisson(60, SCHEMA.shape)
TOTAL, FEMALE = int(COUNTS.sum()), int(COUNTS[:, 0].sum())
FACTS = [f"total = {TOTAL}", f"2*count(sex = 'F') - count(age IN (1, 5)) = {2 * FEMALE - COUNTS[[1, 5]].sum()}"]
STRATEGIES = ["identity", vc.Tree(branching=2, refine=False), vc.Wavelet(), vc.Marginals(k=2), vc.Adaptive(side=3)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_facts_are_exact_answers_of_its_history(strategy: object) -> None:
    release = release_of(SCHEMA, COUNTS, seed=3, strategy=strategy)
    history = vc.refine(release, FACTS).answered
    exact = history[history.variances == 0]
    assert len(history) == len(release.answered) + 2
    np.testing.assert_allclose(exact.queries.apply(COUNTS), exact.values)
    assert history.privacy == str(release.privacy)


def test_models_obey_the_facts() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=3), FACTS)
    asked = vc.Workload(SCHEMA, [{}, {"sex": "F"}, {"age": [1, 5]}])
    for model in (vc.KernelPCA().fit(refined), vc.MaxEntropy().fit(refined)):
        total, female, some = model.answer(asked).value
        assert total == pytest.approx(TOTAL, rel=1e-6)
        assert 2 * female - some == pytest.approx(2 * FEMALE - COUNTS[[1, 5]].sum(), rel=1e-4)


def test_inequalities_are_left_out_of_a_history_and_that_is_told() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=3), [f"total = {TOTAL}", f"count(sex = 'F') >= {FEMALE - 90}"])
    with pytest.warns(UserWarning, match="a history has no inequalities"):
        assert (refined.answered.variances == 0).sum() == 1


def test_the_record_alone_teaches_nothing_because_facts_would_be_lost() -> None:
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=3), FACTS)
    with pytest.raises(vc.VeilcubeError, match="learn from the release itself"):
        read_history(refined.record)
    assert len(read_history([refined.unrefined])) < len(read_history([refined]))


@pytest.mark.parametrize("strategy", [*STRATEGIES, "staged"], ids=str)
def test_synthetic_rows_follow_facts_and_binding_inequalities(strategy: object) -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 11)]) if strategy == "staged" else SCHEMA
    counts = COUNTS.sum(axis=1) if strategy == "staged" else COUNTS
    release = release_of(schema, counts, seed=3, strategy=vc.Tree() if strategy == "staged" else strategy)
    young = float(release.count("age <= 3").value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refined = vc.refine(release, [f"total = {TOTAL}", f"count(age <= 3) <= {young - 40:.0f}"])
    rows = refined.synthesize()
    assert len(rows) == TOTAL
    assert (rows["age"] <= 3).sum() <= young - 40 + 4 * np.sqrt(TOTAL) / 2
    assert len(refined.synthesize(17)) == 17


def test_synthetic_rows_are_written_like_those_of_other_releases(tmp_path) -> None:  # type: ignore[no-untyped-def]
    refined = vc.refine(release_of(SCHEMA, COUNTS, seed=3), FACTS)
    assert refined.synthesize(50, tmp_path / "rows.csv").read_text().count("\n") == 51
    with pytest.raises(vc.VeilcubeError, match="end its name in"):
        refined.synthesize(50, tmp_path / "rows.txt")
