"""Parameters that are True or False take nothing else: "no" does not count as yes, and is not charged for."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.curator.protected.table import Partition, ProtectedTable
from veilcube.errors import VeilcubeError

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 9), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.arange(20).reshape(10, 2)
NO_FLAGS = ["no", "", "False", 0, 1, None, 2.5, [], [True], np.array([True, False]), object()]


def restored(**flag: object) -> object:
    """Restore a ledger in the working folder from a backup of it."""
    ledger, copy = vc.Ledger("budget.db"), Path("backup.db")
    if not copy.exists():
        ledger.create("people", 1)
        ledger.backup(copy)
    return ledger.restore(copy, **flag)


# How to call each of them with everything but the flag right; t is a protected table.
PROTECTED: dict[tuple[str, str], Callable[[ProtectedTable, dict[str, object]], object]] = {
    ("ProtectedTable.noisy_count", "fresh"): lambda t, flag: t.noisy_count(epsilon=1, **flag),
    ("ProtectedTable.noisy_sum", "fresh"): lambda t, flag: t.noisy_sum("age", epsilon=1, **flag),
    ("ProtectedTable.noisy_mean", "fresh"): lambda t, flag: t.noisy_mean("age", epsilon=1, **flag),
    ("ProtectedTable.noisy_moment", "fresh"): lambda t, flag: t.noisy_moment({"age": 2}, epsilon=1, **flag),
    ("ProtectedTable.noisy_marginal", "fresh"): lambda t, flag: t.noisy_marginal("sex", epsilon=1, **flag),
    ("ProtectedTable.noisy_max", "fresh"): lambda t, flag: t.noisy_max("age", epsilon=1, **flag),
    ("ProtectedTable.noisy_min", "fresh"): lambda t, flag: t.noisy_min("age", epsilon=1, **flag),
    ("ProtectedTable.noisy_quantile", "fresh"): lambda t, flag: t.noisy_quantile("age", epsilon=1, **flag),
    ("ProtectedTable.noisy_quantiles", "fresh"): lambda t, flag: t.noisy_quantiles("age", [0.5], epsilon=1, **flag),
    ("Partition.noisy_count", "fresh"): lambda t, flag: t.partition("sex").noisy_count(epsilon=1, **flag),
    ("Partition.noisy_sum", "fresh"): lambda t, flag: t.partition("sex").noisy_sum("age", epsilon=1, **flag),
    ("Partition.noisy_mean", "fresh"): lambda t, flag: t.partition("sex").noisy_mean("age", epsilon=1, **flag),
}
OTHERS: dict[tuple[str, str], Callable[[dict[str, object]], object]] = {
    ("GroupedTables", "full_cells"): lambda flag: vc.GroupedTables(**flag),
    ("Ledger.restore", "write_off"): lambda flag: restored(**flag),
    ("Release.export", "whole"): lambda flag: release_of(SCHEMA, COUNTS).export("t.csv", **flag),
    ("Release.save", "tables"): lambda flag: release_of(SCHEMA, COUNTS).save("t.veil", **flag),
    ("Release.publish", "report"): lambda flag: release_of(SCHEMA, COUNTS).publish("site", **flag),
    ("Tree", "refine"): lambda flag: vc.Tree(**flag),
    ("Wavelet", "threshold"): lambda flag: vc.Wavelet(**flag),
    ("posterior", "discrete"): lambda flag: vc.posterior([(5, {1.0: 1})], **flag),
    ("refine", "integers"): lambda flag: vc.refine([1.0, 2.0], "q1 + q2 = 4", **flag),
    ("refine", "counts"): lambda flag: vc.refine([1.0, 2.0], "q1 + q2 = 4", **flag),
    ("refine", "kept_rows"): lambda flag: vc.refine(release_of(SCHEMA, COUNTS), "total = 200", **flag),
    ("refinement_privacy", "data_dependent"): lambda flag: vc.refinement_privacy(
        "a + b = 1", names=["a", "b"], epsilon=1, **flag
    ),
}
# None leaves a choice open, and one flag for each fact is a list of them.
ALSO_RIGHT = {
    ("Release.save", "tables"): [None],
    ("refine", "counts"): [None],
    ("refinement_privacy", "data_dependent"): [[True]],
}
INTERNAL = {
    ("Wavelet", "is_identity"),
}


def flags_of(name: str, public: object) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a public callable, or of a class and its methods, that may be True or False."""
    members = inspect.getmembers(public) if inspect.isclass(public) else []
    for called, what in [(name, public), *((f"{name}.{member}", what) for member, what in members if member[0] != "_")]:
        parameters = inspect.signature(what).parameters.values() if callable(what) else []
        yield from ((called, part.name) for part in parameters if re.search(r"\bbool\b", str(part.annotation)))


def is_error(public: object) -> bool:
    return inspect.isclass(public) and issubclass(public, BaseException)


def test_every_flag_of_the_public_interface_is_tried_here() -> None:
    public = [(name, getattr(vc, name)) for name in vc.__all__ if not is_error(getattr(vc, name))]
    everything = [*public, ("ProtectedTable", ProtectedTable), ("Partition", Partition)]
    found = {flag for name, what in everything for flag in flags_of(name, what)}
    assert found - INTERNAL == set(PROTECTED) | set(OTHERS)


@pytest.mark.parametrize("asked", PROTECTED, ids=".".join)
def test_what_is_neither_true_nor_false_is_refused_before_it_is_charged(tmp_path: Path, asked: tuple[str, str]) -> None:
    cube, ledger = vc.Cube(SCHEMA, COUNTS), f"sqlite:///{tmp_path}/budget.db"
    table = vc.protect(cube, ledger=ledger, dataset="d", epsilon=10)
    PROTECTED[asked](table, {})
    spent = table.budget.spent
    for given in NO_FLAGS:
        with pytest.raises(VeilcubeError, match=f"{asked[1]} must be True or False"):
            PROTECTED[asked](table, {asked[1]: given})
    assert table.budget.spent == spent
    PROTECTED[asked](table, {asked[1]: False})
    assert table.budget.spent == spent
    PROTECTED[asked](table, {asked[1]: np.True_})
    assert table.budget.spent == spent + 1


@pytest.mark.parametrize("asked", OTHERS, ids=".".join)
def test_what_is_neither_true_nor_false_is_refused(
    asked: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    right = ALSO_RIGHT.get(asked, [])
    for given in [True, False, *right]:
        OTHERS[asked]({asked[1]: given})
    for given in NO_FLAGS:
        if not any(given is other or (type(given) is type(other) and given == other) for other in right):
            with pytest.raises(VeilcubeError, match=asked[1]):
                OTHERS[asked]({asked[1]: given})


def test_a_flag_about_a_release_is_read_before_the_release_is_refined() -> None:
    release = release_of(SCHEMA, COUNTS)
    with pytest.raises(VeilcubeError, match="counts must be True or False"):
        vc.refine(release, "total = 100", counts="no")  # type: ignore[call-overload]
