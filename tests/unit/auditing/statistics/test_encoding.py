"""Outputs keep all by which they can be told apart."""

import math
from fractions import Fraction

import numpy as np
import pytest

from veilcube.auditing.statistics import Raised, Vocabulary, taken_apart

DIFFERENT = [
    1,
    1.0,
    True,
    "1",
    b"1",
    None,
    -0.0,
    0.0,
    math.nan,
    math.inf,
    [1],
    (1,),
    [1, 2],
    [[1], 2],
    {"a": 1},
    {"b": 1},
    {1, 2},
    Fraction(1, 3),
    np.ones(1),
    np.ones(2),
    np.ones(2, dtype=int),
    Raised("ValueError", "no"),
    Raised("ValueError", "other"),
    10**400,
    {"a": [1, None]},
    np.float64(1.5),
]


def test_different_outputs_have_different_keys_and_equal_ones_the_same() -> None:
    keys = [taken_apart(output) for output in DIFFERENT]
    for place, one in enumerate(keys):
        assert [other for other in keys if (other.structure, other.key) == (one.structure, one.key)] == [one], (
            DIFFERENT[place]
        )
        assert taken_apart(DIFFERENT[place]) == one or DIFFERENT[place] != DIFFERENT[place]


def test_numbers_are_found_in_any_shape() -> None:
    assert taken_apart({"b": [1, 2.5], "a": None}).numbers == (1.0, 2.5)
    assert taken_apart(np.arange(3)).numbers == (0.0, 1.0, 2.0)
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    assert taken_apart(deep).numbers == ()


def test_features_tell_lowest_bits_and_differences() -> None:
    sample = Vocabulary().encode([(0.5, 1.0), (0.1, 2.0), (3.0, 4.0)])
    assert sample.features["lowest bit of number 1"].tolist() == [-1.0, -55.0, 0.0]
    assert sample.features["number 1 less number 2"].tolist() == [-0.5, -1.9, -1.0]
    assert sample.features["the sum"].tolist() == pytest.approx([1.5, 2.1, 7.0])


def test_outputs_of_several_shapes_stand_beside_each_other() -> None:
    sample = Vocabulary().encode([[1, 2], [3], "none", []])
    assert sample.features["how many numbers"].tolist() == [2, 1, 0, 0]
    assert len(set(sample.structures.tolist())) == 4
