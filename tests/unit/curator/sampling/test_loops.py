"""The compiled kernel against unbounded integers on the same tape, at the words where it could go wrong.

What is proved in docs/proofs/discrete-laplace.md is tested here.
"""

import ast
import inspect
import math
import re
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from support.seeded import SeededWords
from support.unbounded import WORD, Reference, TapeEndedError
from veilcube.curator.sampling import loops as kernel
from veilcube.system.loops import Loop

LIMIT = kernel.LARGEST_TERM
words_of_64_bits = st.integers(0, WORD - 1)
terms = st.integers(1, LIMIT) | st.integers(1, 1000) | st.sampled_from([LIMIT, LIMIT - 1, 2**40])


def tape_of(values: list[int]) -> kernel.Words:
    return np.array(values, dtype=np.uint64)


def numbers(*values: int) -> list[np.uint64]:
    return [np.uint64(value) for value in values]


def smallest_word_for(value: int, bound: int) -> int:
    """The first word whose product with ``bound`` has ``value`` as its high word."""
    return -(-value * WORD // bound)


@settings(deadline=None)  # the first call compiles
@given(words_of_64_bits, words_of_64_bits)
def test_the_high_word_of_a_product_is_exact(a: int, b: int) -> None:
    assert int(kernel.high_word(*numbers(a, b))) == a * b // WORD


@settings(deadline=None)  # the first call compiles
@given(st.lists(words_of_64_bits, min_size=3, max_size=3), terms, st.data())
def test_a_uniform_draw_rejects_exactly_the_surplus_words(tail: list[int], bound: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, bound - 1))
    nudge = data.draw(st.integers(-1, 1))
    # Every bound accepts the last word: a tape of surplus words alone, such as zeros, must not run out.
    tape = [(smallest_word_for(value, bound) + nudge) % WORD, *tail, WORD - 1]
    reference = Reference(tape)
    expected = reference.uniform(bound)
    result, at = kernel.uniform(tape_of(tape), 0, np.uint64(bound))
    assert (int(result), at) == (expected, reference.at)


@settings(deadline=None)  # the first call compiles
@given(st.lists(words_of_64_bits, min_size=4, max_size=4), terms.filter(lambda term: term > 1), st.data())
def test_a_bernoulli_trial_is_exact_beside_its_threshold(
    tail: list[int], denominator: int, data: st.DataObject
) -> None:
    numerator = data.draw(st.integers(1, denominator - 1))
    nudge = data.draw(st.integers(-1, 1))
    tape = [max(0, min(WORD - 1, numerator * WORD // denominator + nudge)), *tail]
    result, at = kernel.bernoulli(tape_of(tape), 0, *numbers(numerator, denominator))
    reference = Reference(tape)
    assert (result, at) == (reference.bernoulli(Fraction(numerator, denominator)), reference.at)


def test_a_bernoulli_trial_reads_on_through_three_ties() -> None:
    third = WORD // 3  # 0x5555...: the binary digits of 1/3 repeat for ever
    for last, expected in ((third - 1, True), (third + 1, False)):
        result, at = kernel.bernoulli(tape_of([third, third, third, last]), 0, *numbers(1, 3))
        assert (result, at) == (expected, 4)


@pytest.mark.parametrize("trials", range(2, 13))
@pytest.mark.parametrize("below", [0, 1])
def test_exp_of_minus_one_changes_sides_at_the_inverse_factorials(trials: int, below: int) -> None:
    x = math.factorial(12) // math.factorial(trials) - below
    tape = [smallest_word_for(x, math.factorial(12)) + 1, WORD - 1]
    reference = Reference(tape)
    assert kernel.bernoulli_exp_one(tape_of(tape), 0) == (reference.bernoulli_exp_one(), reference.at)


@pytest.mark.parametrize("successes", range(6))
def test_exp_of_minus_one_goes_on_past_twelve_successful_trials(successes: int) -> None:
    # 2^34·12! is below 2^64, so x = 0, and above the surplus 2^64 mod 12!, so the word is not rejected.
    tape = [2**34, *[0] * successes, WORD - 1]
    assert kernel.bernoulli_exp_one(tape_of(tape), 0) == ((13 + successes) % 2 == 1, len(tape))


@pytest.mark.parametrize(
    ("t", "s"), [(1, 1), (1, 4), (1, 1000), (7, 2), (20, 1), (10**9, 123_456_789), (2**40, 1), (LIMIT, 1), (LIMIT, 3)]
)
def test_samples_equal_those_of_unbounded_integers_on_the_same_tape(t: int, s: int) -> None:
    tape = SeededWords(5).words(4_000)
    reference = Reference([int(word) for word in tape])
    expected, used = [], 0
    while True:
        try:
            expected.append(reference.laplace(t, s))
            used = reference.at
        except TapeEndedError:
            break
    samples = np.zeros(4_000, dtype=np.int64)
    filled, at = kernel.fill_laplace(samples, 0, tape_of([t]), tape_of([s]), tape)
    assert (filled, at) == (len(expected), used)
    assert samples[:filled].tolist() == expected


def test_a_sample_that_leaves_64_bits_is_refused_not_wrapped() -> None:
    # A tape of 0.4, 0.4, ... accepts every turn: 0.4 lies between 1/6 and 1/2.
    tape = np.full(1_000, WORD * 2 // 5, dtype=np.uint64)
    with pytest.raises(OverflowError, match="64-bit"):
        kernel.laplace(tape, 0, *numbers(1, 1))


def test_a_dead_source_of_zeros_is_refused_not_read_for_ever() -> None:
    with pytest.raises(OverflowError, match="64-bit"):
        kernel.bernoulli_exp(np.zeros(1_000, dtype=np.uint64), 0, *numbers(1, 2))


def compiled_functions() -> list[str]:
    return [name for name, value in vars(kernel).items() if isinstance(value, Loop)]


def test_the_source_of_the_kernel_has_no_floating_point() -> None:
    module = ast.parse(inspect.getsource(kernel))
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    assert set(compiled_functions()) == set(functions) - {"compiled"}
    assert "fill_laplace" in functions
    for node in (inner for name in compiled_functions() for inner in ast.walk(functions[name])):
        assert not isinstance(node, ast.Div | ast.Pow)
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float | complex))
        assert not (isinstance(node, ast.Name | ast.Attribute) and "float" in ast.unparse(node))


def test_the_machine_code_of_the_kernel_has_no_floating_point() -> None:
    # numba makes a variable that is int64 on one path and uint64 on another a float64, and says nothing.
    fresh = numba.njit(nogil=True)(kernel.fill_laplace.py_func)  # type: ignore[attr-defined]
    word_array = numba.types.Array(numba.uint64, 1, "C")
    fresh.compile((numba.types.Array(numba.int64, 1, "C"), numba.int64, word_array, word_array, word_array))
    (code,) = fresh.inspect_llvm().values()
    assert "mul i64" in code
    assert not re.search(r"\b(double|float|fadd|fmul|fdiv|fptoui|uitofp|sitofp)\b", code)
