"""What callers of the noise package may rely on: its arguments, its refusals, and that nobody draws the same twice."""

import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.forks import agreeing_entries, in_forked_children
from support.seeded import RecordedWords, SeededWords
from veilcube.curator.sampling import SystemWords, discrete_laplace, laplace, vectors
from veilcube.curator.sampling.laplace import read_scale, read_scales
from veilcube.errors import PrivacyError

pytestmark = pytest.mark.real_entropy
WIDE = 2**40  # two independent samples at this scale agree with a probability below 2^-40


def test_forked_children_never_agree_with_each_other_or_with_their_parent() -> None:
    def work() -> npt.NDArray[np.int64]:
        return discrete_laplace(WIDE, 50)

    before = work().tobytes()
    results = [before, *in_forked_children(work, children=2), work().tobytes()]
    assert [len(result) for result in results] == [400] * 4
    assert agreeing_entries(results) == 0


def test_a_source_carried_over_a_fork_gives_different_words_on_each_side() -> None:
    source = SystemWords()
    source.words(10)
    results = in_forked_children(lambda: source.words(50), children=2)
    assert agreeing_entries([*results, source.words(50).tobytes()]) == 0


def test_threads_never_agree_even_when_they_share_a_source() -> None:
    source = SystemWords()
    with ThreadPoolExecutor(4) as pool:
        words = list(pool.map(lambda _: source.words(50).tobytes(), range(20)))
        noise = list(pool.map(lambda _: discrete_laplace(WIDE, 50).tobytes(), range(20)))
    assert agreeing_entries(words) == 0
    assert agreeing_entries(noise) == 0


def test_the_halves_that_two_threads_fill_do_not_repeat_each_other() -> None:
    size = vectors.THREADS * vectors.SAMPLES_WORTH_A_THREAD
    noise = discrete_laplace(2**56, size)
    assert np.unique(noise).size == size


def test_a_source_keeps_no_state_that_could_be_stolen_or_copied() -> None:
    source = SystemWords()
    before = pickle.dumps(source)
    source.words(100)
    assert pickle.dumps(source) == before
    assert not hasattr(source, "__dict__")


@pytest.mark.parametrize("count", [0, 1, 8191, 8192, 8193, 20_000])
def test_system_words_fill_the_whole_array_with_distinct_words(count: int) -> None:
    words = SystemWords().words(count)
    assert words.dtype == np.uint64
    assert words.shape == (count,)
    assert words.flags.writeable
    assert np.unique(words).size == count
    assert not (words == 0).any()


def test_every_bit_of_a_system_word_is_set_half_of_the_time() -> None:
    bits = np.unpackbits(SystemWords().words(20_000).view(np.uint8)).reshape(-1, 64)
    # Six standard deviations over 64 bits: a right source fails once in ten million runs.
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 6 * 0.5 / np.sqrt(20_000)


def test_no_production_function_takes_a_seed() -> None:
    assert list(inspect.signature(discrete_laplace).parameters) == ["scale", "size", "source"]
    assert inspect.signature(discrete_laplace).parameters["source"].default is None
    assert list(inspect.signature(SystemWords).parameters) == []
    assert list(inspect.signature(SystemWords.words).parameters) == ["self", "count"]


@pytest.mark.parametrize("refill", [1, 2, 3, 7, 64, 1000])
def test_the_samples_do_not_depend_on_where_the_tape_is_cut(refill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = discrete_laplace("7/2", 500, source=SeededWords(11))
    monkeypatch.setattr(laplace, "WORDS_PER_REFILL", refill)
    assert discrete_laplace("7/2", 500, source=SeededWords(11)).tolist() == whole.tolist()


def test_a_scale_for_each_entry_survives_refills(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = [Fraction(1, 4), 2**40, "7/2"] * 50
    whole = discrete_laplace(scales, source=SeededWords(12))
    monkeypatch.setattr(laplace, "WORDS_PER_REFILL", 2)
    assert discrete_laplace(scales, source=SeededWords(12)).tolist() == whole.tolist()
    assert np.abs(whole[1::3]).min() > np.abs(np.delete(whole, np.s_[1::3])).max()


def test_different_seeds_give_different_samples() -> None:
    first, second = (discrete_laplace(WIDE, 20, source=SeededWords(seed)) for seed in (1, 2))
    assert (first != second).all()


@pytest.mark.parametrize(
    ("size", "shape"),
    [(0, (0,)), (1, (1,)), (5, (5,)), ((), ()), ((2, 3), (2, 3)), ((4, 0, 2), (4, 0, 2)), (np.int32(3), (3,))],
)
def test_the_result_has_the_shape_that_was_asked_for(size: Any, shape: tuple[int, ...]) -> None:
    noise = discrete_laplace(10, size)
    assert noise.shape == shape
    assert noise.dtype == np.int64


def test_no_word_is_drawn_for_an_empty_size() -> None:
    assert discrete_laplace(10, 0, source=RecordedWords([])).size == 0


@pytest.mark.parametrize("scales", [[1, 2.5, "7/2"], np.array([[1, 2], [3, 4]]), np.array([0.1, 7.5]), []])
def test_scales_per_entry_give_their_own_shape(scales: Any) -> None:
    shape = np.shape(scales)
    assert discrete_laplace(scales).shape == shape
    assert discrete_laplace(scales, shape).shape == shape
    assert discrete_laplace(np.array(scales, dtype=object)).shape == shape


def test_a_large_vector_of_scales_is_shared_out_with_its_samples() -> None:
    size = vectors.THREADS * vectors.SAMPLES_WORTH_A_THREAD
    scales = np.where(np.arange(size) < size // 3, 2**50, 1)
    noise = np.abs(discrete_laplace(scales, size))
    assert np.median(noise[: size // 3]) > 2**40
    assert noise[size // 3 :].max() < 100


@pytest.mark.parametrize(
    ("scale", "exact"),
    [
        (3, Fraction(3)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.uint8(7), Fraction(7)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Fraction(7, 2), Fraction(7, 2)),
        ("7/2", Fraction(7, 2)),
        (" 1e-2 ", Fraction(1, 100)),
        (1e17, Fraction(10**17)),
        (0.30000000000000004, Fraction(30000000000000004, 10**17)),
        (2**57, Fraction(2**57)),
        (Fraction(1, 2**57), Fraction(1, 2**57)),
    ],
)
def test_a_scale_is_read_exactly(scale: Any, exact: Fraction) -> None:
    assert read_scale(scale) == exact
    assert discrete_laplace(scale, 3).shape == (3,)


def test_equal_looking_entries_of_different_types_keep_their_own_meaning() -> None:
    nearest_binary = Fraction(3, 2) + Fraction(1, 2**50)
    assert float(nearest_binary) == nearest_binary
    scales = read_scales([float(nearest_binary), nearest_binary])
    assert scales.denominators[0] != scales.denominators[1]


NOT_NUMBERS = [float("nan"), float("inf"), "nan", "inf", "", "seven", "1/0", "1.5/2", "1e9999999", None, True, 1j, b"3"]
NOT_POSITIVE = [0, -1, -0.5, "0", "-7/2", Fraction(-1, 3), 0.0]
NOT_EXACT = [2**57 + 1, Fraction(1, 2**57 + 1), 1e300, 5e-324, "1/1000000000000000000000"]


@pytest.mark.parametrize("scale", NOT_NUMBERS + NOT_POSITIVE + NOT_EXACT, ids=repr)
def test_a_scale_that_cannot_be_sampled_exactly_is_refused(scale: Any) -> None:
    for attempt in (scale, [1, scale], np.array([scale, 1], dtype=object)):
        with pytest.raises(PrivacyError, match=r"^The scale of the noise.*\.$"):
            discrete_laplace(attempt, source=RecordedWords([]))


@pytest.mark.parametrize("scales", [np.array([1, 0]), np.array([2**57 + 1]), np.array([-1]), np.array([1.0, np.nan])])
def test_an_array_with_a_bad_scale_is_refused(scales: npt.NDArray[Any]) -> None:
    with pytest.raises(PrivacyError, match="scale of the noise"):
        discrete_laplace(scales, source=RecordedWords([]))


@pytest.mark.parametrize("scale", [np.array([True]), np.array(["x"]), np.array([1j]), {1, 2}, [[1, 2], [3]]], ids=repr)
def test_what_is_no_vector_of_scales_is_refused(scale: Any) -> None:
    with pytest.raises(PrivacyError, match="scale of the noise"):
        discrete_laplace(scale, source=RecordedWords([]))


@pytest.mark.parametrize("size", [-1, (2, -3), 2.5, "3", [2, 3], (1.0,)], ids=repr)
def test_a_size_that_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(PrivacyError, match="size of the noise"):
        discrete_laplace(1, size, source=RecordedWords([]))


@pytest.mark.parametrize("size", [2, 4, (3, 1), ()], ids=repr)
def test_a_size_other_than_the_number_of_scales_is_refused(size: Any) -> None:
    with pytest.raises(PrivacyError, match="one scale for each entry"):
        discrete_laplace([1, 2, 3], size, source=RecordedWords([]))


class ShortWords:
    def words(self, count: int) -> npt.NDArray[np.uint64]:
        return np.zeros(count - 1, dtype=np.uint64)


class SignedWords:
    def words(self, count: int) -> npt.NDArray[Any]:
        return np.zeros(count, dtype=np.int64)


@pytest.mark.parametrize("source", [ShortWords(), SignedWords()], ids=["too few", "signed"])
def test_a_source_that_breaks_its_promise_is_refused(source: Any) -> None:
    with pytest.raises(PrivacyError, match="as many 64-bit unsigned words"):
        discrete_laplace(1, 1, source=source)
