"""The compiled Gaussian sampler against unbounded integers on the same tape, also at words that leave a coin open.

What is proved in docs/proofs/discrete-gaussian.md is tested here.
"""

import ast
import inspect
import itertools
import re
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from support.seeded import RecordedWords, SeededWords
from support.unbounded import WORD, Reference, TapeEndedError
from veilcube.curator.sampling import discrete_gaussian, gaussian as callers_side, gaussian_loops as kernel
from veilcube.curator.sampling.gaussian import LARGEST_VARIANCE, SMALLEST_VARIANCE, read_variances
from veilcube.system.loops import Loop

UNIT = 2**kernel.EXPONENT_BITS
MARGIN = int(kernel.MARGIN)
PROVEN_ERROR = 13
VARIANCES = [
    SMALLEST_VARIANCE,
    Fraction(1, 2),
    Fraction(1),
    Fraction(2),  # every exponent is a multiple of 1/4
    Fraction(2) + Fraction(1, 2**70),  # exponents are beside whole numbers, and on both sides
    Fraction(2) - Fraction(1, 2**70),
    Fraction(7, 2),
    Fraction(1000, 3),
    Fraction(10**30, 7**20),
    Fraction(2**40),
    Fraction(10**60 + 7, 10**37 + 9),
    LARGEST_VARIANCE,
]
variances = (
    st.fractions(SMALLEST_VARIANCE, 4, max_denominator=10**40)
    | st.builds(Fraction, st.integers(10**20, 10**44), st.just(10**20))
    | st.sampled_from(VARIANCES)
)


def describe(value: object) -> str:
    return str(value).replace("/", "_over_")


def exact_exponent(variance: Fraction, t: int, magnitude: int) -> Fraction:
    return (magnitude - variance / t) ** 2 / (2 * variance)


def estimate(variance: Fraction, magnitude: int) -> int:
    _, *constants = read_variances(variance).table[0]
    return int(kernel.exponent(np.uint64(magnitude), *constants))


@settings(deadline=None)  # the first call compiles
@given(variances, st.data())
def test_the_exponent_is_within_the_proven_error(variance: Fraction, data: st.DataObject) -> None:
    t = int(read_variances(variance).table[0, kernel.SCALE])
    assert (t - 1) ** 2 <= variance < t**2
    near_the_centre = st.integers(0, 2).map(lambda step: int(variance / t) + step)
    magnitude = data.draw(st.integers(0, 64 * t - 1) | near_the_centre | st.just(64 * t - 1))
    assert abs(estimate(variance, magnitude) - exact_exponent(variance, t, magnitude) * UNIT) < PROVEN_ERROR


@settings(deadline=None)
@given(
    st.integers(0, 2**63 - 1) | st.builds(lambda n, step: n * UNIT + step, st.integers(1, 2**14), st.integers(-40, 40))
)
@example(0)
@example(MARGIN)
@example(UNIT - MARGIN)
@example(UNIT + MARGIN)
def test_the_coins_make_up_the_exponent_and_none_leaves_its_range(estimated: int) -> None:
    whole, coins, rest = (int(part) for part in kernel.split_exponent(np.uint64(estimated)))
    for error in (-MARGIN, 0, MARGIN):
        exact = Fraction(max(estimated + error, 0), UNIT)
        of_a_coin = (exact - whole) / coins
        assert 0 <= of_a_coin <= 1
        assert abs(of_a_coin * UNIT - rest) <= MARGIN


RESTS = [0, 5, MARGIN, 300, UNIT // 3, UNIT // 2 + 7, UNIT - MARGIN]


@pytest.mark.parametrize("trial", range(1, 7))
@pytest.mark.parametrize("rest", RESTS)
def test_a_coin_never_answers_against_the_exact_comparison(rest: int, trial: int) -> None:
    answers = 0
    for offset, low_bits in itertools.product(range(-40, 41), (0, 2**16 - 1)):
        bits = min(max(rest // trial + offset, 0), UNIT - 1)
        word = (bits << (64 - kernel.EXPONENT_BITS)) + low_bits
        # Zeros pass the trials before this one, where they are not left open; the last word fails every trial.
        tape = np.array([*[0] * (trial - 1), word, WORD - 1], dtype=np.uint64)
        _, at = kernel.coin(tape, 0, np.uint64(rest))
        answers += at in (trial, trial + 1)
        if at == trial:  # it fails, also for the largest exponent that the estimate allows
            assert Fraction(word, WORD) >= Fraction(rest + MARGIN, UNIT * trial)
        if at == trial + 1:  # it succeeds, also for the smallest
            assert Fraction(word + 1, WORD) <= Fraction(rest - MARGIN, UNIT * trial)
    assert answers >= 40 or rest <= MARGIN + trial


def test_the_margin_covers_the_proven_error() -> None:
    assert PROVEN_ERROR <= MARGIN


def reference_samples(tape: list[int], variance: Fraction) -> tuple[list[int], int, Reference]:
    """Return what unbounded integers draw from the tape, the words that these samples used, and who drew."""
    reference = Reference(tape)
    samples, used = [], 0
    while True:
        try:
            samples.append(reference.gaussian(variance))
            used = reference.at
        except TapeEndedError:
            return samples, used, reference


def fill(tape: list[int], variance: Fraction) -> tuple[list[int], int, bool]:
    samples = np.zeros(len(tape), dtype=np.int64)
    given_one = read_variances(variance)
    filled, at, is_open = kernel.fill_gaussian(
        samples, 0, given_one.table, given_one.rows, np.array(tape, dtype=np.uint64), 0
    )
    return samples[:filled].tolist(), at, is_open


@pytest.mark.parametrize("variance", VARIANCES, ids=describe)
def test_samples_equal_those_of_unbounded_integers_on_the_same_tape(variance: Fraction) -> None:
    tape = [int(word) for word in SeededWords(5).words(6_000)]
    expected, used, _ = reference_samples(tape, variance)
    assert len(expected) > 300
    assert fill(tape, variance) == (expected, used, False)


@pytest.mark.parametrize("variance", VARIANCES, ids=describe)
@pytest.mark.parametrize("nudge", [-1, 0, 1])
@pytest.mark.parametrize("behind", [0, WORD // 3, WORD - 1])
def test_a_coin_at_its_threshold_is_left_open_and_then_decided_exactly(
    variance: Fraction, nudge: int, behind: int
) -> None:
    tape = [int(word) for word in SeededWords(6).words(200)]
    coins = reference_samples(tape, variance)[2].coins
    # Trials of a later number are seldom, and so worth more than the first.
    at, trial, rest = max(coins[:12], key=lambda coin: coin[1])
    tape[at] = min(max(int(rest / trial * WORD) + nudge, 0), WORD - 1)
    tape[at + 1] = behind
    expected, used, _ = reference_samples(tape, variance)
    before, _, is_open = fill(tape, variance)
    assert is_open
    assert before == expected[: len(before)]
    assert drawn_exactly(tape, variance, len(before)) == expected
    assert used <= len(tape)


def drawn_exactly(tape: list[int], variance: Fraction, open_sample: int) -> list[int]:
    """Draw with the callers' side from a tape that may end inside a sample: as many samples as it holds."""
    count = len(reference_samples(tape, variance)[0])
    assert open_sample < count
    words = [*tape, *([WORD - 1] * (callers_side.WORDS_PER_SAMPLE * count + callers_side.SPARE_WORDS))]
    return discrete_gaussian(variance, count, source=RecordedWords(words)).tolist()


def test_a_tie_that_a_broken_comparison_decides_the_other_way_changes_the_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variance = Fraction(1000, 3)
    tape = [int(word) for word in SeededWords(6).words(200)]
    at, trial, rest = reference_samples(tape, variance)[2].coins[0]
    tape[at] = int(rest / trial * WORD) - 1
    expected = reference_samples(tape, variance)[0]
    monkeypatch.setattr(callers_side, "_is_below", lambda words, at, threshold: (False, at + 1))
    assert drawn_exactly(tape, variance, 0) != expected


def test_more_trials_than_the_loop_counts_are_left_to_unbounded_integers() -> None:
    variance = Fraction(7, 2)
    tape = [int(word) for word in SeededWords(8).words(100)]
    at = next(at for at, trial, rest in reference_samples(tape, variance)[2].coins if rest * UNIT > 300)
    tape = [*tape[:at], *[0] * 150, *[WORD - 1] * 300]
    expected = reference_samples(tape, variance)[0]
    assert fill(tape, variance)[2]
    assert drawn_exactly(tape, variance, 0) == expected


@pytest.mark.parametrize("cut", range(1, 40))
def test_an_open_coin_survives_every_cut_of_the_tape(cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    variance = Fraction(1000, 3)
    tape = [int(word) for word in SeededWords(6).words(400)]
    at, trial, rest = reference_samples(tape, variance)[2].coins[0]
    tape[at] = int(rest / trial * WORD)
    expected = reference_samples(tape, variance)[0][:10]
    monkeypatch.setattr(callers_side, "WORDS_PER_REFILL", cut)
    assert discrete_gaussian(variance, 10, source=RecordedWords(tape)).tolist() == expected


def test_a_proposal_that_leaves_64_bits_is_refused_not_wrapped() -> None:
    # A tape of 0.4, 0.4, ... accepts every turn of a proposal: 0.4 lies between 1/6 and 1/2.
    with pytest.raises(OverflowError, match="64-bit"):
        fill([WORD * 2 // 5] * 1_000, Fraction(1))


def test_the_source_of_the_kernel_has_no_floating_point() -> None:
    module = ast.parse(inspect.getsource(kernel))
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    assert {name for name in functions if not isinstance(getattr(kernel, name), Loop)} == set()
    for node in (inner for function in functions.values() for inner in ast.walk(function)):
        assert not isinstance(node, ast.Div | ast.Pow)
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float | complex))
        assert not (isinstance(node, ast.Name | ast.Attribute) and "float" in ast.unparse(node))


def test_the_machine_code_of_the_kernel_has_no_floating_point() -> None:
    # numba makes a variable that is int64 on one path and uint64 on another a float64, and says nothing.
    fresh = numba.njit(nogil=True)(kernel.fill_gaussian.py_func)  # type: ignore[attr-defined]
    words, table = (numba.types.Array(numba.uint64, dimensions, "C") for dimensions in (1, 2))
    places = numba.types.Array(numba.int64, 1, "C")
    fresh.compile((places, numba.int64, table, places, words, numba.int64))
    (code,) = fresh.inspect_llvm().values()
    assert "mul i64" in code
    assert not re.search(r"\b(double|float|fadd|fmul|fdiv|fptoui|uitofp|sitofp)\b", code)
