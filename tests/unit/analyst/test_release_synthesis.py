"""Synthetic rows of a release: from the model of grouped tables, or from one of maximum entropy for any other."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.releases import release_of
from veilcube.analyst import MaxEntropyModel
from veilcube.analyst.estimate.mixture import estimator
from veilcube.analyst.estimate.mixture.estimator import LatentClasses, MixtureEstimate
from veilcube.errors import QueryError

ATTRIBUTES = [
    vc.Ordinal("age", 20, 27),
    vc.Ordinal("income", edges=[0, 10_000, 20_000, 50_000]),
    vc.Ordinal("born", "2000", "2002", unit="year"),
    vc.Nominal("sex", ["Female", "Male"], missing="cell", column="gender"),
]
SCHEMA = vc.Schema(ATTRIBUTES)
FORBIDDEN = [{"age": (20, 23), "income": (10_000, 50_000)}, {"born": "2001", "sex": "Male"}]


def counts() -> NDArray[np.int64]:
    age, income, born, sex = np.indices(SCHEMA.shape)
    return np.random.default_rng(1).poisson(12.0 * np.exp(-np.abs(age / 3 - income)) * (1 + born) / (1 + sex))


def grouped(schema: vc.Schema = SCHEMA) -> vc.Release:
    """Return a release of grouped tables that answers by few fits and replays."""
    found = counts()
    if schema.impossible:
        found[:4, 1:], found[:, :, 1, 1] = 0, 0
    release = release_of(schema, found, 2, 1, "grouped tables")
    release._fitted["latent_classes"] = LatentClasses(fits=1, replays=2).fit(release.record)
    return release


def impossible_rows(frame: pd.DataFrame) -> int:
    young = (frame["age"] <= 23) & (frame["income"] >= 10_000)
    men = (frame["born"].dt.year == 2001) & (frame["gender"] == "Male")
    return int((young | men).sum())


def test_rows_have_the_types_of_the_schema_and_count_back() -> None:
    frame = grouped().synthesize(700)
    assert list(frame.columns) == ["age", "income", "born", "gender"]
    assert [frame[name].dtype.kind for name in ("age", "income", "born")] == ["i", "i", "M"]
    assert list(frame["gender"].cat.categories) == ["Female", "Male"]
    assert vc.count(frame, SCHEMA).exact_counts.sum() == 700


@pytest.mark.parametrize("n", [1, 2, 999, np.int64(37)])
def test_as_many_rows_come_as_are_asked_for(n: int) -> None:
    assert len(grouped().synthesize(n)) == n


def test_as_many_rows_come_as_the_release_has_unless_said() -> None:
    release = grouped()
    fitted = release._fitted["latent_classes"]
    assert isinstance(fitted, MixtureEstimate)
    assert len(release.synthesize()) == round(fitted.model.rows)
    assert abs(len(release.synthesize()) - counts().sum()) < 60
    empty = release_of(SCHEMA, np.zeros(SCHEMA.shape, dtype=np.int64), 2, 1, "grouped tables")
    empty._fitted["latent_classes"] = LatentClasses(fits=1, replays=2).fit(empty.record)
    assert 1 <= len(empty.synthesize()) < 60


def test_rows_follow_the_model() -> None:
    release = grouped()
    fitted = release._fitted["latent_classes"]
    assert isinstance(fitted, MixtureEstimate)
    drawn = vc.count(release.synthesize(50_000), SCHEMA).exact_counts / 50_000
    for axes in [(0,), (3,), (0, 1), (1, 3)]:
        others = tuple(axis for axis in range(4) if axis not in axes)
        expected = fitted.model.cells().sum(axis=others) / fitted.model.rows
        assert np.abs(drawn.sum(axis=others) - expected).sum() < 0.03, axes
    assert np.abs(drawn.sum(axis=(1, 2, 3)) - counts().sum(axis=(1, 2, 3)) / counts().sum()).sum() < 0.12


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_rows_are_written_to_files_that_count_back(suffix: str, tmp_path: Path) -> None:
    release, seen = grouped(), []
    path = release.synthesize(400, tmp_path / f"rows{suffix}", seen.append)
    assert path == tmp_path / f"rows{suffix}"
    assert vc.count(path, SCHEMA).exact_counts.sum() == 400
    assert seen[-1] == 1.0
    if suffix == ".parquet":
        assert pq.ParquetFile(path).schema_arrow.metadata[b"veilcube.privacy"].decode() == release.privacy.words


def test_rows_are_drawn_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "ROWS_AT_ONCE", 64)
    fitted = grouped(vc.Schema(ATTRIBUTES, impossible=FORBIDDEN))._fitted["latent_classes"]
    assert isinstance(fitted, MixtureEstimate)
    parts = list(fitted.draw_rows(500))
    assert sum(len(part) for part in parts) == 500
    assert max(len(part) for part in parts) <= 64
    assert all(part.dtype == np.int32 and part.shape[1] == 4 for part in parts)


def test_impossible_combinations_are_never_drawn() -> None:
    schema = vc.Schema(ATTRIBUTES, impossible=FORBIDDEN)
    frame = grouped(schema).synthesize(20_000)
    assert len(frame) == 20_000
    assert impossible_rows(frame) == 0
    assert impossible_rows(grouped().synthesize(20_000)) > 100  # it would be seen


def with_first(possible: float) -> vc.Release:
    """Return a release whose model has this share of its rows at the one value of an attribute that can be."""
    schema = vc.Schema([vc.Ordinal("a", 0, 1), vc.Ordinal("b", 0, 1)], impossible=[{"a": 0}])
    release = release_of(schema, [[0, 0], [5, 5]], 2, 1, "grouped tables")
    fitted = LatentClasses(fits=1, replays=2).fit(release.record)
    fitted.model.laws[0][:] = [1.0 - possible, possible]
    release._fitted["latent_classes"] = fitted
    return release


@pytest.mark.parametrize("n", [1, 3])
def test_a_few_rows_come_also_where_most_of_the_model_is_impossible(n: int) -> None:
    release = with_first(0.002)
    for _ in range(10):
        frame = release.synthesize(n)
        assert len(frame) == n
        assert (frame["a"] == 1).all()


def test_a_model_without_a_row_that_can_be_is_told() -> None:
    with pytest.raises(QueryError, match="no rows where the schema says that rows can be"):
        with_first(0.0).synthesize(3)


@pytest.mark.parametrize("strategy", ["grouped tables", "identity"])
@pytest.mark.parametrize("n", [0, -3, True, 2.5, "10"])
def test_a_number_of_rows_that_is_none_is_refused_before_anything_is_fitted(strategy: str, n: object) -> None:
    release = release_of(SCHEMA, counts(), 1, 1, strategy)
    with pytest.raises(QueryError, match="1 or more"):
        release.synthesize(n)  # type: ignore[arg-type]
    assert release._fitted == {}


def test_a_name_that_promises_another_kind_of_file_is_refused_before_anything_is_fitted(tmp_path: Path) -> None:
    release = release_of(SCHEMA, counts(), 1, 1, "grouped tables")
    with pytest.raises(QueryError, match=r"\.csv, \.csv\.gz or \.parquet"):
        release.synthesize(10, tmp_path / "rows.xlsx")
    assert release._fitted == {}


def test_rows_of_other_releases_come_from_the_model_of_maximum_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[object] = []
    fit = vc.MaxEntropy.fit

    def watched(self: vc.MaxEntropy, history: vc.Release) -> MaxEntropyModel:
        fitted.append(history)
        return fit(self, history)

    monkeypatch.setattr(vc.MaxEntropy, "fit", watched)
    schema = vc.Schema([vc.Ordinal("age", 20, 60), vc.Nominal("sex", ["Female", "Male"])])
    exact = np.random.default_rng(3).poisson(np.outer(np.linspace(120, 20, 41), [1.0, 0.4]))
    release = release_of(schema, exact, 2, 1, "identity")
    frame = release.synthesize(5_000)
    assert fitted == [release]
    assert "latent_classes" not in release._fitted
    drawn = vc.count(frame, schema).exact_counts / 5_000
    assert len(frame) == 5_000
    assert np.abs(drawn.sum(axis=0) - exact.sum(axis=0) / exact.sum()).max() < 0.03
    assert abs(drawn[:20].sum() - exact[:20].sum() / exact.sum()) < 0.03
    grouped().synthesize(1)
    assert fitted == [release]
