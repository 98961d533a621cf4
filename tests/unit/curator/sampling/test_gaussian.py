"""What callers of the Gaussian sampler rely on: its arguments, its refusals, and that nobody draws the same twice."""

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.forks import agreeing_entries, in_forked_children
from support.seeded import RecordedWords, SeededWords
from veilcube.curator.sampling import RandomWords, discrete_gaussian, gaussian, vectors
from veilcube.curator.sampling.gaussian import read_variance, read_variances
from veilcube.errors import PrivacyError

pytestmark = pytest.mark.real_entropy
WIDE = 2**80  # two independent samples with this variance agree with a probability below 2^-40


def test_forked_children_never_agree_with_each_other_or_with_their_parent() -> None:
    def work() -> npt.NDArray[np.int64]:
        return discrete_gaussian(WIDE, 50)

    before = work().tobytes()
    results = [before, *in_forked_children(work, children=2), work().tobytes()]
    assert [len(result) for result in results] == [400] * 4
    assert agreeing_entries(results) == 0


def test_threads_never_agree() -> None:
    with ThreadPoolExecutor(4) as pool:
        noise = list(pool.map(lambda _: discrete_gaussian(WIDE, 50).tobytes(), range(20)))
    assert agreeing_entries(noise) == 0


def test_the_halves_that_two_threads_fill_do_not_repeat_each_other() -> None:
    size = vectors.THREADS * vectors.SAMPLES_WORTH_A_THREAD
    noise = discrete_gaussian(WIDE, size)
    first, second = (np.unique(half) for half in np.array_split(noise, 2))
    # 2^15 by 2^15 pairs agree with a probability of 2^-41 each.
    assert np.intersect1d(first, second).size <= 1


def test_no_production_function_takes_a_seed() -> None:
    assert list(inspect.signature(discrete_gaussian).parameters) == ["variance", "size", "source"]
    assert inspect.signature(discrete_gaussian).parameters["source"].default is None


@pytest.mark.parametrize("refill", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("variance", ["1/16", 2, "1000/3", WIDE])
def test_the_samples_do_not_depend_on_where_the_tape_is_cut(
    variance: Any, refill: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = discrete_gaussian(variance, 300, source=SeededWords(11))
    monkeypatch.setattr(gaussian, "WORDS_PER_REFILL", refill)
    assert discrete_gaussian(variance, 300, source=SeededWords(11)).tolist() == whole.tolist()


def test_a_variance_for_each_entry_survives_refills(monkeypatch: pytest.MonkeyPatch) -> None:
    variances = [Fraction(1, 4), 2**80, "7/2"] * 50
    whole = discrete_gaussian(variances, source=SeededWords(12))
    monkeypatch.setattr(gaussian, "WORDS_PER_REFILL", 2)
    assert discrete_gaussian(variances, source=SeededWords(12)).tolist() == whole.tolist()
    assert np.abs(whole[1::3]).min() > np.abs(np.delete(whole, np.s_[1::3])).max()


class KeptWords:
    """Words of a seed, and the very arrays that were handed out."""

    def __init__(self) -> None:
        self.handed_out: list[npt.NDArray[np.uint64]] = []
        self._words = SeededWords(3)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        self.handed_out.append(self._words.words(count))
        return self.handed_out[-1]


def test_words_are_wiped_after_use(monkeypatch: pytest.MonkeyPatch) -> None:
    tapes: list[npt.NDArray[np.uint64]] = []
    fill: Callable[..., Any] = gaussian.fill_gaussian

    def recording_fill(samples: Any, start: int, table: Any, rows: Any, words: Any, at: int) -> Any:
        tapes.append(words)
        return fill(samples, start, table, rows, words, at)

    monkeypatch.setattr(gaussian, "fill_gaussian", recording_fill)
    monkeypatch.setattr(gaussian, "WORDS_PER_REFILL", 64)
    source: RandomWords = KeptWords()
    discrete_gaussian(3, 50, source=source)
    assert len(tapes) > 5
    assert not any(tape.any() for tape in [*tapes, *source.handed_out])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("size", "shape"),
    [(0, (0,)), (1, (1,)), (5, (5,)), ((), ()), ((2, 3), (2, 3)), ((4, 0, 2), (4, 0, 2)), (np.int32(3), (3,))],
)
def test_the_result_has_the_shape_that_was_asked_for(size: Any, shape: tuple[int, ...]) -> None:
    noise = discrete_gaussian(10, size)
    assert noise.shape == shape
    assert noise.dtype == np.int64


def test_no_word_is_drawn_for_an_empty_size() -> None:
    assert discrete_gaussian(10, 0, source=RecordedWords([])).size == 0


@pytest.mark.parametrize("variances", [[1, 2.5, "7/2"], np.array([[1, 2], [3, 4]]), np.array([0.1, 7.5]), [], [5]])
def test_variances_per_entry_give_their_own_shape(variances: Any) -> None:
    shape = np.shape(variances)
    assert discrete_gaussian(variances).shape == shape
    assert discrete_gaussian(variances, shape).shape == shape
    assert discrete_gaussian(np.array(variances, dtype=object)).shape == shape


def test_a_large_vector_of_variances_is_shared_out_with_its_samples() -> None:
    size = vectors.THREADS * vectors.SAMPLES_WORTH_A_THREAD
    variances = np.where(np.arange(size) < size // 3, 2**60, 1)
    noise = np.abs(discrete_gaussian(variances, size))
    assert np.median(noise[: size // 3]) > 2**28
    assert noise[size // 3 :].max() < 20


@pytest.mark.parametrize(
    ("variance", "exact"),
    [
        (3, Fraction(3)),
        (0.1, Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.uint8(7), Fraction(7)),
        (Decimal("0.25"), Fraction(1, 4)),
        ("7/2", Fraction(7, 2)),
        (" 1e2 ", Fraction(100)),
        (1e24, Fraction(10**24)),
        (2**80, Fraction(2**80)),
        (Fraction(1, 16), Fraction(1, 16)),
        (Fraction(10**300 + 1, 10**299 + 7), Fraction(10**300 + 1, 10**299 + 7)),
    ],
)
def test_a_variance_is_read_exactly_however_long_it_is(variance: Any, exact: Fraction) -> None:
    assert read_variance(variance) == exact
    assert discrete_gaussian(variance, 3).shape == (3,)


def test_equal_looking_entries_of_different_types_keep_their_own_meaning() -> None:
    nearest_binary = Fraction(3, 2) + Fraction(1, 2**50)
    assert float(nearest_binary) == nearest_binary
    variances = read_variances([float(nearest_binary), nearest_binary])
    assert variances.of_entry(0)[0] != variances.of_entry(1)[0]


NOT_NUMBERS = [float("nan"), float("inf"), "nan", "inf", "", "seven", "1/0", "1.5/2", "1e9999999", None, True, 1j, b"3"]
NOT_POSITIVE = [0, -1, -0.5, "0", "-7/2", Fraction(-1, 3), 0.0]
OUTSIDE = [2**80 + 1, Fraction(1, 17), 1e300, 5e-324, Fraction(1, 16) - Fraction(1, 10**30)]


@pytest.mark.parametrize("variance", NOT_NUMBERS + NOT_POSITIVE + OUTSIDE, ids=repr)
def test_a_variance_that_cannot_be_sampled_is_refused(variance: Any) -> None:
    for attempt in (variance, [1, variance], np.array([variance, 1], dtype=object)):
        with pytest.raises(PrivacyError, match=r"^The variance of the noise.*\.$"):
            discrete_gaussian(attempt, source=RecordedWords([]))


BAD_ARRAYS = [np.array([1, 0]), np.array([-1]), np.array([1.0, np.nan]), np.array([True]), np.array(["x"]), {1, 2}]


@pytest.mark.parametrize("variances", [*BAD_ARRAYS, np.array([1j]), [[1, 2], [3]]], ids=repr)
def test_what_is_no_vector_of_variances_is_refused(variances: Any) -> None:
    with pytest.raises(PrivacyError, match="variance of the noise"):
        discrete_gaussian(variances, source=RecordedWords([]))


@pytest.mark.parametrize("size", [-1, (2, -3), 2.5, "3", [2, 3], (1.0,)], ids=repr)
def test_a_size_that_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(PrivacyError, match="size of the noise"):
        discrete_gaussian(1, size, source=RecordedWords([]))


@pytest.mark.parametrize("size", [2, 4, (3, 1), ()], ids=repr)
def test_a_size_other_than_the_number_of_variances_is_refused(size: Any) -> None:
    with pytest.raises(PrivacyError, match="one variance for each entry"):
        discrete_gaussian([1, 2, 3], size, source=RecordedWords([]))


@pytest.mark.parametrize("source", [7, np.random.default_rng(1), "seed"], ids=["number", "generator", "text"])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(PrivacyError, match="source of random words"):
        discrete_gaussian(1, 1, source=source)
