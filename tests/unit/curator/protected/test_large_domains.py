"""Protected tables on domains that cannot be written out: what a row alone decides works, the rest costs nothing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import veilcube as vc
from veilcube.curator.protected import ProtectedTable
from veilcube.errors import CapacityError
from veilcube.system import memory

SIZE = 2**30
SCHEMA = vc.Schema([vc.Ordinal("x", 0, SIZE - 1), vc.Nominal("sex", ["F", "M"])])
ROWS = pd.DataFrame({"x": np.arange(1000) * 1_000_000, "sex": ["F", "M"] * 500})


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProtectedTable:
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 2**30)
    ledger = vc.Ledger(f"sqlite:///{tmp_path}/budget.db")
    with pytest.warns(UserWarning, match="no ledger"):
        return vc.protect(ROWS, SCHEMA, ledger=ledger, dataset="d", epsilon=1000)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [({"x": (0, SIZE // 2)}, 537), ({"x": 5_000_000}, 1), ({"x": (None, 99_999_999), "sex": "F"}, 50), ({}, 1000)],
)
def test_counts_of_ranges_need_no_cells(table: ProtectedTable, condition: dict[str, object], rows: int) -> None:
    assert table.where(**condition).noisy_count(epsilon=20).value == pytest.approx(rows, abs=3)
    part = table.where(**condition).partition("sex").noisy_count(epsilon=20)
    assert part.value.sum() == pytest.approx(rows, abs=6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.noisy_sum("x", epsilon=1),
        lambda table: table.noisy_mean("x", epsilon=1),
        lambda table: table.where(x=(5, 10**9)).noisy_sum("x", epsilon=1),
        lambda table: table.noisy_max("x", epsilon=1),
        lambda table: table.noisy_min("x", epsilon=1),
        lambda table: table.noisy_quantile("x", 0.5, epsilon=1),
        lambda table: table.partition("sex").noisy_sum("x", epsilon=1),
        lambda table: table.partition("x").noisy_count(epsilon=1),
        lambda table: table.noisy_marginal(["x"], epsilon=1),
        lambda table: table.where(x=[5, 9]).noisy_count(epsilon=1),
        lambda table: table.where("x < 7 OR x > 9").noisy_count(epsilon=1),
    ],
)
def test_questions_that_need_all_cells_are_refused_before_they_are_charged(
    table: ProtectedTable, ask: Callable[[ProtectedTable], object]
) -> None:
    with pytest.raises(CapacityError, match=r"needs .* GiB, but only 8\.0 GiB of memory are available; ") as refusal:
        ask(table)
    assert "\n" not in str(refusal.value)
    assert table.budget.spent == 0
