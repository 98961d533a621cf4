"""Which attributes stay flat, and what a wavelet plan refuses."""

from itertools import combinations
from math import inf

import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import PlanError

JOBS = {"Care": ["Nurse", "Aide", "Doctor"], "Office": ["Clerk", "Judge"], "Other": ["Artist"]}
LONG = vc.Schema([vc.Ordinal("age", 0, 100), vc.Nominal("job", hierarchy=JOBS), vc.Ordinal("income", 0, 999)])
WIDE = vc.Schema([vc.Ordinal(f"a{i}", 0, 3 + 40 * (i % 2)) for i in range(6)])


def subsets(schema: vc.Schema) -> list[tuple[str, ...]]:
    return [names for count in range(len(schema) + 1) for names in combinations(schema.names, count)]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("schema", [LONG, WIDE], ids=["long", "wide"])
def test_no_other_choice_of_flat_attributes_has_less_error(schema: vc.Schema, neighbours: str) -> None:
    chosen = vc.plan(schema, 0.5, vc.Wavelet(), neighbours=neighbours)
    others = [
        vc.plan(schema, 0.5, vc.Wavelet(flat=names), neighbours=neighbours).expected_error for names in subsets(schema)
    ]
    assert chosen.expected_error == pytest.approx(min(others), rel=1e-12)


def test_queries_with_gaps_are_not_taken_for_the_blocks_around_them() -> None:
    schema = vc.Schema([vc.Ordinal(f"a{i}", 0, 15) for i in range(5)])
    corners = vc.Workload(schema, [" AND ".join(f"a{i} IN (0, 15)" for i in range(5)), "a0 = 3 OR a1 = 7"])
    chosen = vc.plan(schema, 1, vc.Wavelet(), workload=corners)
    others = [vc.plan(schema, 1, vc.Wavelet(flat=names), workload=corners).expected_error for names in subsets(schema)]
    assert chosen.expected_error == pytest.approx(min(others), rel=1e-12)


def test_many_hierarchies_are_compared_in_seconds() -> None:
    groups = {"x": ["a", "b"], "y": ["d", "e"]}
    many = vc.Schema([vc.Nominal(f"n{i}", hierarchy=groups) for i in range(10)])
    assert vc.plan(many, 1, vc.Wavelet()).expected_error > 0


def test_the_choice_follows_the_workload() -> None:
    first = np.random.default_rng(0).integers(0, LONG.shape, size=(200, 3))
    cells = vc.Workload.ranges(LONG, first, first)
    ranges = vc.Workload(LONG, [{"age": (0, 60), "income": (0, low)} for low in range(400, 900, 10)])
    assert vc.plan(LONG, 1, vc.Wavelet(), workload=cells).strategy.flat == LONG.names
    assert "income" not in vc.plan(LONG, 1, vc.Wavelet(), workload=ranges).strategy.flat


def test_short_attributes_stay_flat_and_long_ones_do_not() -> None:
    census = vc.Schema([vc.Ordinal("age", 0, 100), vc.Nominal("sex", ["f", "m"]), vc.Ordinal("income", 0, 4095)])
    flat = vc.plan(census, 1, "wavelet").strategy.flat
    assert "sex" in flat
    assert "income" not in flat


def test_candidates_show_every_choice_that_was_compared() -> None:
    plan = vc.plan(LONG, 1, vc.Wavelet())
    assert {candidate.strategy.flat for candidate in plan.candidates} == set(subsets(LONG))
    assert plan.expected_error == min(candidate.expected_error for candidate in plan.candidates)


def test_one_name_may_stand_without_a_list() -> None:
    assert vc.Wavelet(flat="age") == vc.Wavelet(flat=["age"])


def test_a_domain_of_one_value_is_planned() -> None:
    single = vc.Schema([vc.Ordinal("age", 5, 5), vc.Nominal("sex", ["f"])])
    assert 0 < vc.plan(single, 1, vc.Wavelet()).expected_error < inf


def test_an_unknown_flat_attribute_is_named() -> None:
    with pytest.raises(PlanError, match="no attribute 'weight' to keep flat; the schema has age, job, income"):
        vc.plan(LONG, 1, vc.Wavelet(flat=["weight"]))


@pytest.mark.parametrize("flat", [3, None, ["age", 3], b"age", {"age": 1, 2: 3}])
def test_flat_must_be_names(flat: object) -> None:
    with pytest.raises(PlanError, match="flat must be 'auto' or a list of names"):
        vc.Wavelet(flat=flat)


@pytest.mark.parametrize("threshold", [None, 1, 0, "soft", 0.5, [True], np.array([1, 2])])
def test_threshold_must_be_a_known_word(threshold: object) -> None:
    with pytest.raises(PlanError, match="threshold must be"):
        vc.Wavelet(threshold=threshold)


def test_coefficients_beyond_64_bits_are_refused_before_anything_is_charged() -> None:
    groups = {f"g{size}": [f"{size}_{i}" for i in range(size)] for size in (2, 3, 5, 7, 11, 13, 17)}
    deep = vc.Schema(
        [
            vc.Nominal(f"job{i}", hierarchy={f"{i}{g}": [f"{i}{v}" for v in vs] for g, vs in groups.items()})
            for i in range(6)
        ]
    )
    with pytest.raises(PlanError, match="could leave 64 bits; name more attributes as flat"):
        vc.plan(deep, 1, vc.Wavelet(flat=[]))
