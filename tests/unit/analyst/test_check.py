"""A release's own health: what its checks find, and that they find nothing where there is nothing."""

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of

PLANE = vc.Schema([vc.Ordinal("a", 0, 31), vc.Ordinal("b", 0, 127)])
LINE = vc.Schema([vc.Ordinal("income", 0, 255)])
RAMP = np.rint(50 * np.add.outer(np.arange(32) / 32, np.arange(128) / 128)).astype(np.int64)


def test_a_ramp_is_told_to_bend_the_marginals_and_is_corrected() -> None:
    check = release_of(PLANE, RAMP, 2.0, 1, vc.Tree()).check()
    found = {finding.kind: finding for finding in check.findings}
    assert not check.is_good
    assert not found["the marginal of a"].is_good
    assert found["the marginal of a"].corrected > 0.8
    assert found["neighbouring cells"].is_good
    assert "the marginal of a" in check.words
    assert "more than noise explains" in str(check)


@pytest.mark.parametrize("strategy", [vc.Tree(), vc.Identity()], ids=["tree", "identity"])
def test_even_counts_agree_with_the_prior(strategy: object) -> None:
    checks = [release_of(LINE, np.full(256, 30), 0.5, seed, strategy).check(estimator="posterior") for seed in range(5)]
    assert sum(check.is_good for check in checks) >= 4
    assert {finding.kind for finding in checks[0].findings} >= {"the total", "wide ranges", "neighbouring cells"}
    assert all("agrees" in check.words for check in checks if check.is_good)


def test_least_squares_has_nothing_to_check() -> None:
    release = release_of(LINE, np.full(256, 30), 0.5, 3, vc.Identity())
    check = release.check(estimator="least_squares")
    assert check.is_good
    assert check.findings == ()
    assert "assumes nothing about neighbouring cells" in check.words
    assert str(check) == check.words


def test_a_check_is_plain_data_too() -> None:
    data = release_of(PLANE, RAMP, 2.0, 1, vc.Tree()).check().to_dict()
    assert data["estimator"] == "posterior"
    assert data["is_good"] is False
    assert {"kind", "questions", "disagreement", "corrected", "is_good"} == set(data["findings"][0])


def test_measurements_that_contradict_each_other_are_told() -> None:
    """A file whose coarse values are off by far more than their noise."""
    release = release_of(LINE, np.full(256, 1), 1.0, 4, vc.Tree(refine=False))
    record = release.record
    part = record.measurements[0]
    values = part.values.copy()
    values[: values.size // 4] += 4_000
    from dataclasses import replace

    broken = vc.Release(replace(record, measurements=(replace(part, values=values),)))
    levels = [finding for finding in broken.check(estimator="posterior").findings if "finer" in finding.kind]
    assert any(not finding.is_good for finding in levels)
