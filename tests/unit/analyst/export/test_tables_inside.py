"""Tables inside release files: other programs read counts from them, veilcube ignores what they say."""

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

import veilcube as vc
from support.releases import release_of
from support.veil_files import edit_document, entries_of, write_entries
from veilcube.errors import CapacityError, ReleaseFileError, VeilcubeError

SCHEMA = vc.Schema([vc.Ordinal("age", 20, 24), vc.Nominal("Größe/ü", ["a", "=b"]), vc.Nominal("größe.ü", ["x", "y"])])
COUNTS = np.random.default_rng(5).poisson(4, SCHEMA.shape)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    release_of(SCHEMA, COUNTS, seed=1, strategy="tree").save(tmp_path / "t.veil")
    return tmp_path / "t.veil"


def test_pandas_reads_counts_without_knowing_the_strategy(path: Path) -> None:
    release = vc.open(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        cells = pd.read_csv(archive.open("tables/cells.csv"))
        ages = pd.read_csv(archive.open("tables/age.csv"))
        assert {"tables/Gr__e__.csv", "tables/gr__e__~2.csv"} <= set(archive.namelist())
    assert cells["age"].tolist() == np.repeat(range(20, 25), 4).tolist()
    np.testing.assert_allclose(cells["value"], release.marginal(*SCHEMA.names).value.ravel(), atol=5e-4)
    np.testing.assert_allclose(ages["high"], release.marginal("age").high, atol=5e-4)


def test_xarray_reads_labelled_counts(path: Path) -> None:
    release = vc.open(path)
    with warnings.catch_warnings(), zarr.storage.ZipStore(path, mode="r") as store:
        warnings.simplefilter("error")
        cells = xr.open_zarr(store, group="cells", chunks=None)
        cells = cells.assign_coords(cells.attrs["labels"])
        one = cells.sel({"age": 22, "größe.ü": "y", "Größe/ü": "=b"})
        assert float(one["value"]) == release.count({"age": 22, "größe.ü": "y", "Größe/ü": "=b"}).value
        assert cells.attrs["privacy"] == str(release.privacy)
        assert xr.open_zarr(store, group="measurements/0", chunks=None)["values"].ndim == 3
        xr.open_datatree(store, engine="zarr", chunks=None)


def test_what_is_read_is_what_was_measured(path: Path) -> None:
    opened = vc.open(path)
    opened.save(path.with_name("again.veil"))
    opened.save(path.with_name("plain.veil"), tables=False)
    assert path.with_name("again.veil").read_bytes() == path.read_bytes()
    plain = vc.open(path.with_name("plain.veil"))
    assert plain.count(age=21) == opened.count(age=21)
    assert json.loads(entries_of(path.with_name("plain.veil"))["veil.json"])["format_version"] == 1
    assert json.loads(entries_of(path)["veil.json"])["format_version"] == 2


def test_a_release_of_many_cells_has_tables_only_if_they_are_wanted(tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 99), vc.Ordinal("b", 0, 99)])
    release = release_of(schema, np.ones((100, 100), dtype=int))
    release.save(tmp_path / "t.veil")
    assert not any(name.startswith(("tables", "cells")) for name in entries_of(tmp_path / "t.veil"))
    release.save(tmp_path / "t.veil", tables=True)
    names = entries_of(tmp_path / "t.veil")
    assert {"tables/a.csv", "tables/b.csv", "cells/value/zarr.json"} <= set(names)
    assert "tables/cells.csv" not in names
    assert vc.open(tmp_path / "t.veil").count() == release.count()


def test_if_estimates_fail_the_measurements_are_saved_all_the_same(tmp_path: Path) -> None:
    release = release_of(SCHEMA, COUNTS)

    def fail(*_: object, **__: object) -> None:
        raise CapacityError("no memory")

    release.marginal = fail  # type: ignore[method-assign, assignment]
    release.save(tmp_path / "t.veil")
    assert vc.open(tmp_path / "t.veil").count().value == COUNTS.sum()
    with pytest.raises(CapacityError):
        release.save(tmp_path / "u.veil", tables=True)
    assert vc.open(tmp_path / "u.veil").count().value == COUNTS.sum()


@pytest.mark.parametrize(
    "edit",
    [
        lambda entries: entries.pop("tables/age.csv"),
        lambda entries: entries.update({"tables/more.csv": b"x"}),
        lambda entries: entries.pop("cells/low/c/0/0/0"),
        lambda entries: entries.update({"cells/low/c/0/0/1": b"x"}),
        lambda entries: entries.update({"cells/zarr.json": entries["zarr.json"]}),
    ],
)
def test_entries_that_are_not_announced_or_are_missing_are_refused(path: Path, edit) -> None:  # type: ignore[no-untyped-def]
    entries = dict(entries_of(path))
    edit(entries)
    write_entries(path, entries)
    with pytest.raises(ReleaseFileError, match="ask for a new copy"):
        vc.open(path)


@pytest.mark.parametrize("tables", [5, "x", [5], ["../x.csv"], ["tables/a/b.csv"], ["veil.json"], [["tables/a.csv"]]])
def test_a_list_of_tables_that_is_none_is_refused(path: Path, tables: object) -> None:
    edit_document(path, "veil.json", lambda manifest: manifest.update(tables=tables))
    with pytest.raises(ReleaseFileError, match="ask for a new copy"):
        vc.open(path)


def test_estimates_in_a_file_of_the_first_format_are_refused(path: Path) -> None:
    edit_document(path, "veil.json", lambda manifest: manifest.update(format_version=1))
    with pytest.raises(ReleaseFileError):
        vc.open(path)


@pytest.mark.parametrize("tables", ["yes", 1, 0.5])
def test_tables_is_true_or_false(path: Path, tables: object) -> None:
    with pytest.raises(VeilcubeError, match="True or False"):
        vc.open(path).save(path, tables=tables)  # type: ignore[arg-type]
