"""Sizes are checked before work: on domains that no memory holds, everything ends at once, by an answer or a sentence.

The memory that is left is pretended to be 2 GiB, so that the same is refused on every machine; the address space is
really limited, so that what slips past the check is seen and takes nothing from others.
"""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import veilcube as vc
from veilcube.errors import VeilcubeError
from veilcube.system import memory

SECONDS = 5
BYTES = 2 * 2**30


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(memory, "_machine_memory", lambda: BYTES)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + BYTES, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.fixture(params=[2**30, 2**33], ids=["2^30", "2^33"])
def schema(request: pytest.FixtureRequest) -> vc.Schema:
    return vc.Schema([vc.Ordinal("a", 1, request.param), vc.Nominal("b", ["x", "y"])])


@pytest.fixture
def table(schema: vc.Schema, tmp_path: Path) -> Any:
    rows = pa.table({"a": [1, 2, 3], "b": ["x", "y", "x"]})
    return vc.protect(rows, schema, vc.Ledger(tmp_path / "budget.db"), "d", 1000)


def ends_at_once(work: Callable[[], object]) -> None:
    began = time.process_time()
    with suppress(VeilcubeError):
        work()
    assert time.process_time() - began < SECONDS


STRATEGIES = ("identity", "tree", "staged tree", "wavelet", "adaptive", "kd tree", "marginals", "matched")


@pytest.mark.parametrize("strategy", ["auto", *STRATEGIES, "grouped tables"])
def test_plans_end_at_once(schema: vc.Schema, strategy: str) -> None:
    ends_at_once(lambda: vc.plan(schema, 1, strategy))
    ends_at_once(lambda: vc.plan(vc.Schema([schema["a"]]), 1, strategy))


@pytest.mark.parametrize(
    "make",
    [
        lambda schema: vc.Workload(schema, [{"a": (1, 5)}]),
        lambda schema: vc.Workload(schema, [{"b": "x"}]),
        lambda schema: vc.Workload(schema, ["a < 5 OR a > 77"]),
        lambda schema: vc.Workload.from_sql(schema, ["SELECT a, COUNT(*) FROM t GROUP BY a"]),
        vc.Workload.prefixes,
        lambda schema: vc.Workload.marginals(schema, 1),
        lambda schema: vc.Workload.random_ranges(schema, 100, 0),
        lambda schema: vc.Workload.random_ranges(schema, 50_000_000, 0),
        lambda schema: vc.KernelPCA().fit(history(schema), total=10).answer(vc.Workload.random_ranges(schema, 3, 1)),
        lambda schema: vc.MaxEntropy().fit(history(schema), total=10),
        lambda schema: vc.count(pa.table({"a": [1], "b": ["x"]}), schema),
        lambda schema: vc.release(pa.table({"a": [1], "b": ["x"]}), schema=schema, strategy="identity"),
    ],
)
def test_workloads_histories_and_counting_end_at_once(schema: vc.Schema, make: Callable[[vc.Schema], object]) -> None:
    ends_at_once(lambda: make(schema))


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.noisy_count(epsilon=1),
        lambda table: table.where(a=(1, 5)).noisy_count(epsilon=1),
        lambda table: table.noisy_sum("a", epsilon=1),
        lambda table: table.noisy_mean("a", epsilon=1),
        lambda table: table.noisy_marginal("a", epsilon=1),
        lambda table: table.noisy_max("a", epsilon=1),
        lambda table: table.noisy_quantile("a", epsilon=1),
        lambda table: table.noisy_quantiles("a", [0.25, 0.5], epsilon=1),
        lambda table: table.distributive(vc.DistributiveQuery.count(), "a", epsilon=1),
        lambda table: table.partition("a")["5"].noisy_count(epsilon=1),
    ],
)
def test_questions_to_a_protected_table_end_at_once_and_are_free_if_refused(
    table: Any, ask: Callable[[Any], object]
) -> None:
    answered: list[object] = []
    ends_at_once(lambda: answered.append(ask(table)))
    assert table.budget.spent == len(answered)


def test_exports_of_more_cells_than_fit_are_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(8)]
    wide = vc.Schema([vc.Ordinal(name, 0, 7) for name in names])
    release = vc.release(pa.table({name: [1, 2, 3] for name in names}), schema=wide, strategy="marginals")
    monkeypatch.setattr(memory, "_machine_memory", lambda: 2**28)
    for export in (release.to_pandas, release.to_xarray, lambda: release.to_parquet(tmp_path / "cells.parquet")):
        began = time.process_time()
        with pytest.raises(VeilcubeError, match=r"marginals|to_parquet"):
            export()
        assert time.process_time() - began < SECONDS
    assert not list(tmp_path.iterdir())


def history(schema: vc.Schema) -> vc.History:
    return vc.History(schema, vc.Workload.random_ranges(schema, 3, 0), [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
