"""Fits that are kept in a folder: the same answers with it and without, and nothing in it that can do harm."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.releases import release_of
from veilcube.analyst.estimate.mixture import remembered
from veilcube.analyst.estimate.mixture.fitting import fit_mixture
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import Observations, read_observations
from veilcube.analyst.estimate.mixture.remembered import MOST_FILES, fit_once
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("a", 0, 4), Ordinal("b", 0, 3), Ordinal("c", 0, 2)])


class Fits:
    """Small fits, and the seeds that were fitted."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def __call__(self, observed: Observations, seed: int) -> Mixture:
        self.seeds.append(seed)
        return fit_mixture(observed, seed, classes=8, steps=10)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Fits:
    made = Fits()
    monkeypatch.setattr(remembered, "fit_mixture", made)
    return made


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("VEILCUBE_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture(scope="module")
def observed() -> Observations:
    counts = np.random.default_rng(1).poisson(20, SCHEMA.shape)
    return read_observations(release_of(SCHEMA, counts, 1, 1, "grouped tables").record)


def numbers_of(model: Mixture) -> list[bytes]:
    return [model.weights.tobytes(), np.float64(model.rows).tobytes(), *(law.tobytes() for law in model.laws)]


def test_the_suite_keeps_no_fits() -> None:
    assert os.environ["VEILCUBE_CACHE"] == ""
    assert remembered._folder() is None


def test_the_same_fit_comes_without_a_folder_when_it_is_made_and_when_it_is_read(
    fits: Fits, observed: Observations, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, read = fit_once(observed, 0), fit_once(observed, 0)
    assert fits.seeds == [0]
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setenv("VEILCUBE_CACHE", "")
    without = fit_once(observed, 0)
    assert fits.seeds == [0, 0]
    assert numbers_of(made) == numbers_of(read) == numbers_of(without)
    plain = fit_mixture(observed, 0, classes=8, steps=10)
    np.testing.assert_allclose(without.cells(), plain.cells(), rtol=1e-5)
    assert read.axes is observed.axes


def test_other_seeds_and_other_tables_are_other_fits(fits: Fits, observed: Observations, folder: Path) -> None:
    everybody, first, *rest = observed.tables
    changed = [
        replace(first, counts=first.counts + 1.0),
        replace(first, variance=first.variance * 2),
        replace(first, groups=(first.groups[0][::-1].copy(),)),
    ]
    others = [replace(observed, tables=(everybody, one, *rest)) for one in changed]
    for case in (observed, *others):
        fit_once(case, 0)
    fit_once(observed, 1)
    assert fits.seeds == [0, 0, 0, 0, 1]
    assert len(list(folder.glob("*.npz"))) == 5


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _saved(**arrays: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with np.load(path) as kept:
            found = {name: kept[name] for name in kept.files}
        with path.open("wb") as stream:
            np.savez_compressed(stream, **{name: one for name, one in (found | arrays).items() if one is not None})

    return change


def _an_array(path: Path) -> None:
    with path.open("wb") as stream:
        np.save(stream, np.arange(5.0))


def _folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "a text": lambda path: path.write_text("weights = 1"),
    "cut off": _cut,
    "an array": _an_array,
    "a folder": _folder_instead,
    "nothing in it": lambda path: path.write_bytes(b"PK\x05\x06" + bytes(18)),
    "no weights": _saved(weights=None),
    "no law of an attribute": _saved(laws2=None),
    "a law of another attribute": _saved(laws0=np.ones((8, 4), dtype=np.float32)),
    "laws of other classes": _saved(laws1=np.ones((9, 4), dtype=np.float32)),
    "several numbers of rows": _saved(rows=np.ones(3)),
    "no number of rows": _saved(rows=np.array(np.nan)),
    "rows below 0": _saved(rows=np.array(-5.0)),
    "weights of 0": _saved(weights=np.zeros(8)),
    "weights that are no numbers": _saved(weights=np.full(8, np.nan)),
    "weights below 0": _saved(weights=np.array([-0.5, *[1.5 / 7] * 7])),
    "laws without an end": _saved(laws0=np.full((8, 5), np.inf, dtype=np.float32)),
    "laws of 0": _saved(laws0=np.zeros((8, 5), dtype=np.float32)),
    "names instead of numbers": _saved(weights=np.array(["a"] * 8)),
    "objects": _saved(weights=np.array([{}] * 8, dtype=object)),
    "a table of weights": _saved(weights=np.full((2, 4), 0.125)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_file_that_is_damaged_or_foreign_is_as_if_it_were_missing(
    damage: Callable[[Path], object], fits: Fits, observed: Observations, folder: Path
) -> None:
    sound = fit_once(observed, 0)
    (path,) = folder.iterdir()
    damage(path)
    assert numbers_of(fit_once(observed, 0)) == numbers_of(sound)
    assert fits.seeds == [0, 0]
    if path.is_file():  # it was made anew
        assert numbers_of(fit_once(observed, 0)) == numbers_of(sound)
        assert fits.seeds == [0, 0]


def test_a_file_with_any_byte_changed_gives_the_fit_or_is_as_if_it_were_missing(
    fits: Fits, observed: Observations, folder: Path
) -> None:
    fit_once(observed, 0)
    (path,) = folder.iterdir()
    sound, random = path.read_bytes(), np.random.default_rng(2)
    for _ in range(300):
        broken = bytearray(sound)
        for place in random.integers(0, len(sound), random.integers(1, 4)):
            broken[place] ^= int(random.integers(1, 256))
        path.write_bytes(broken)
        found = remembered._read(path, observed)
        assert found is None or np.isfinite(found.cells()).all()
    path.write_bytes(sound)
    assert remembered._read(path, observed) is not None


@pytest.mark.parametrize("place", ["a file", "below a file", "a device", "no such device"])
def test_a_folder_that_cannot_be_written_is_as_if_there_were_none(
    place: str, fits: Fits, observed: Observations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    named = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "folder"}
    monkeypatch.setenv("VEILCUBE_CACHE", str(named.get(place, "/dev/null" if place == "a device" else "/proc/none")))
    expected = numbers_of(fit_once(observed, 0))
    assert numbers_of(fit_once(observed, 0)) == expected
    assert fits.seeds == [0, 0]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_disk_that_fails_while_a_fit_is_kept_is_no_reason_to_fail(
    fits: Fits, observed: Observations, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", failing)
    fit_once(observed, 0)
    assert fits.seeds == [0]
    assert list(folder.iterdir()) == []


def test_no_more_files_are_kept_than_may_be_and_the_oldest_go_first(
    fits: Fits, observed: Observations, folder: Path
) -> None:
    folder.mkdir()
    for number in range(MOST_FILES + 5):
        old = folder / f"{number}.npz"
        old.write_bytes(b"")
        os.utime(old, (1_000 + number, 1_000 + number))
    (folder / "notes.txt").write_text("mine")
    fit_once(observed, 0)
    left = list(folder.glob("*.npz"))
    assert len(left) == MOST_FILES
    assert sorted(int(path.stem) for path in left if len(path.stem) < 10) == list(range(6, MOST_FILES + 5))
    assert (folder / "notes.txt").read_text() == "mine"
    fit_once(observed, 0)
    assert fits.seeds == [0]


def test_the_folder_is_the_named_one_or_lies_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILCUBE_CACHE", "/somewhere")
    assert remembered._folder() == Path("/somewhere")
    monkeypatch.delenv("VEILCUBE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert remembered._folder() == Path("/caches/veilcube")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert remembered._folder() == Path("/home/someone/.cache/veilcube")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert remembered._folder() is None
