"""Fits that were made before, kept in a folder of the user's: a command that asks one question need not fit anew.

A fit depends on published tables alone, so what is kept is as public as the release. The folder is ``veilcube`` in
``XDG_CACHE_HOME`` or ``~/.cache``; ``VEILCUBE_CACHE`` names another one, and an empty text turns it off. Whatever is
wrong with a file there, it is as if it were missing.
"""

import hashlib
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.mixture.fitting import BLUR, CLASSES, MOST_ROUNDS, RATE, STEPS, fit_mixture
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import Observations
from veilcube.errors import ReleaseFileError
from veilcube.system import atomic_file

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

LAYOUT = 2
MOST_FILES = 128


def fit_once(observed: Observations, seed: int) -> Mixture:
    """Return a fitted mixture, from the folder if the same was fitted before."""
    folder = _folder()
    path = None if folder is None else folder / f"{_name(observed, seed)}.npz"
    found = None if path is None else _read(path, observed)
    if found is None:
        fitted = fit_mixture(observed, seed)
        kept = _arrays_of(fitted)
        if path is not None:
            _write(path, kept)
        # What is kept is rounded: the same answers come with the folder and without it.
        found = _mixture_of(kept, observed) or fitted
    return found


def _folder() -> Path | None:
    named = os.environ.get("VEILCUBE_CACHE")
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # nobody's home
        return (Path(base) if base else Path.home() / ".cache") / "veilcube"
    return None


def _name(observed: Observations, seed: int) -> str:
    settings = f"{LAYOUT} {CLASSES} {STEPS} {MOST_ROUNDS} {RATE} {BLUR} {seed} {observed.shape} {observed.rows!r}"
    digest = hashlib.sha256(settings.encode())
    for table in observed.tables:
        digest.update(f"{table.axes} {table.variance!r}".encode())
        for array in (*table.groups, table.counts):
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _arrays_of(fitted: Mixture) -> Arrays:
    laws = {f"laws{axis}": law.astype(np.float32) for axis, law in enumerate(fitted.laws)}
    return {"weights": fitted.weights, "rows": np.array(fitted.rows)} | laws


def _mixture_of(arrays: Arrays, observed: Observations) -> Mixture | None:
    """Return the mixture that arrays hold; None if they are those of nothing like it."""
    weights, rows = arrays["weights"].astype(np.float64), float(arrays["rows"])
    laws = [arrays[f"laws{axis}"].astype(np.float64) for axis in range(len(observed.axes))]
    shapes = [(weights.size, axis.size) for axis in observed.axes]
    if [law.shape for law in laws] != shapes or weights.ndim != 1 or not 0.0 < rows < np.inf:
        return None
    sums = [law.sum(axis=1, keepdims=True) for law in (weights[np.newaxis], *laws)]
    if not all((found > 0.0).all() and (found < np.inf).all() for found in sums):
        return None
    if min(float(part.min()) for part in (weights, *laws)) < 0.0:
        return None
    exact = tuple(law / found for law, found in zip(laws, sums[1:], strict=True))
    return Mixture(observed.axes, weights / weights.sum(), exact, rows)


def _read(path: Path, observed: Observations) -> Mixture | None:
    # A damaged file may fail in any way that zip files, headers of arrays and their texts can.
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return _mixture_of(arrays, observed)
    return None


def _write(path: Path, kept: Arrays) -> None:
    with suppress(OSError, ReleaseFileError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with atomic_file(path) as stream:
            np.savez_compressed(stream, **kept)  # type: ignore[arg-type]
        others = sorted(path.parent.glob("*.npz"), key=lambda other: other.stat().st_mtime)
        for old in others[:-MOST_FILES]:
            old.unlink(missing_ok=True)
