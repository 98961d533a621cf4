"""Parities by transform and by elimination: golden values, brute force, confidence, and bad input."""

from fractions import Fraction
from itertools import product
from time import process_time

import numpy as np
import pytest
from scipy.linalg import hadamard

from support.parities import PAPER, parity_table, released
from veilcube.analyst.study.parity import learn_parity, learn_parity_by_elimination, parity_count, walsh_hadamard
from veilcube.errors import QueryError
from veilcube.laws.noise import DiscreteLaplace


def test_the_transform_has_its_golden_values() -> None:
    # ERRATA: Walsh-Hadamard.
    transformed = walsh_hadamard([5, 1, 0, 7, 2, 6, 8, 1])
    assert transformed.tolist() == [30, 0, -2, 0, -4, -6, 0, 22]
    assert transformed.dtype == np.int64


@pytest.mark.parametrize("size", [1, 2, 4, 64, 256])
def test_the_transform_is_the_product_with_hadamards_matrix(size: int) -> None:
    vector = np.random.default_rng(size).integers(-(10**6), 10**6, size)
    assert walsh_hadamard(vector).tolist() == (hadamard(size) @ vector).tolist()


def test_the_transform_is_exact_on_large_integers_and_its_own_inverse() -> None:
    vector = np.array([2**50 + 1, -(2**50), 3, 2**49 + 7])
    assert (walsh_hadamard(walsh_hadamard(vector)) == 4 * vector).all()


def test_the_transform_leaves_its_argument_alone_and_takes_floats() -> None:
    vector = np.array([0.5, 1.5])
    assert walsh_hadamard(vector).tolist() == [2.0, -1.0]
    assert vector.tolist() == [0.5, 1.5]


def test_a_parity_count_is_that_of_the_rows_one_by_one() -> None:
    counts = np.arange(16).reshape((2,) * 4)
    for vector in product((0, 1), repeat=3):
        if any(vector):
            expected = sum(
                counts[*row, label]
                for *row, label in product((0, 1), repeat=4)
                if sum(a * b for a, b in zip(row, vector, strict=True)) % 2 == label
            )
            assert parity_count(counts, vector) == expected
            assert parity_count(counts.ravel(), np.array(vector)) == expected


@pytest.mark.parametrize("vector", [(1,), (1, 0), (0, 1, 1), PAPER])
def test_both_learners_find_the_vector_without_noise(vector: tuple[int, ...]) -> None:
    exact = parity_table(vector, rows=5000, seed=1)
    learned = learn_parity(exact)
    assert (learned.vector, learned.agreement) == (vector, 1.0)
    assert learned.confidence > 0.999
    eliminated = learn_parity_by_elimination(exact, seed=2)
    assert eliminated.vector == vector
    assert eliminated.shares == tuple(float(bit) for bit in vector)
    assert eliminated.confidence > 0.999


def test_the_learned_vector_has_the_most_agreeing_rows_of_all() -> None:
    counts = np.random.default_rng(3).integers(-20, 100, 32)
    agreeing = {v: parity_count(counts, v) for v in product((0, 1), repeat=4) if any(v)}
    either = {v: max(many, counts.sum() - many) for v, many in agreeing.items()}
    first, second = sorted(either, key=lambda v: -either[v])[:2]
    learned = learn_parity(counts)
    assert (learned.vector, learned.runner_up) == (first, second)
    assert learned.agreement == pytest.approx(either[first] / counts.sum())
    assert learned.negated == (either[first] > agreeing[first])


def test_confidence_needs_no_false_modesty_when_the_noise_is_small() -> None:
    counts = released(parity_table(PAPER, rows=100_000, seed=7), 100, seed=1)
    assert learn_parity(counts, DiscreteLaplace(Fraction(100))).confidence > 1 - 1e-12


@pytest.mark.parametrize("knows_noise", [True, False])
@pytest.mark.parametrize("rows", [0, 6, 300, 20_000])
@pytest.mark.parametrize("skew", [0.5, 0.15])
@pytest.mark.parametrize("attributes", [1, 2, 4, 7])
def test_labels_without_a_parity_are_believed_as_seldom_as_the_confidence_says(
    attributes: int, skew: float, rows: int, knows_noise: bool
) -> None:
    generator = np.random.default_rng(rows + attributes)
    found = []
    for seed in range(150):
        bits = generator.random((rows, attributes + 1)) < skew
        counts = np.bincount(bits @ (1 << np.arange(attributes + 1)), minlength=2 ** (attributes + 1))
        noise = DiscreteLaplace(Fraction(5)) if knows_noise else None
        found.append(learn_parity(released(counts, 5, seed) if knows_noise else counts, noise).confidence)
    for level in (0.5, 0.8, 0.9, 0.99):
        # Of 150 tables, with room for four standard deviations of such a share.
        assert np.mean(np.array(found) >= level) <= 1 - level + 4 * np.sqrt(level * (1 - level) / 150)


@pytest.mark.parametrize("knows_noise", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_a_parity_and_its_negation_are_found_in_random_tables(seed: int, knows_noise: bool) -> None:
    generator = np.random.default_rng(seed)
    length = int(generator.integers(2, 9))
    vector = tuple(generator.permutation([1, *generator.integers(0, 2, length - 1).tolist()]).tolist())
    exact = parity_table(vector, rows=20_000, seed=seed, wrong=0.1)
    noise = DiscreteLaplace(Fraction(20)) if knows_noise else None
    for negated in (False, True):
        counts = exact.reshape(-1, 2)[:, ::-1].ravel() if negated else exact
        learned = learn_parity(released(counts, 20, seed), noise)
        assert (learned.vector, learned.negated) == (vector, negated)
        assert learned.confidence > 0.99
        assert learned.agreement == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("noise", [None, DiscreteLaplace(Fraction(3))])
@pytest.mark.parametrize("counts", [[0] * 4, [0] * 16, [7] * 8, [-1] * 8, [1, 0, 0, 0], [0, 0, 0, 5, 0, 0, 0, 0]])
def test_counts_that_say_nothing_give_no_confidence(counts: list[int], noise: DiscreteLaplace | None) -> None:
    assert learn_parity(counts, noise).confidence == 0


def test_a_skewed_label_beside_skewed_attributes_is_no_parity() -> None:
    generator = np.random.default_rng(1)
    bits = generator.random((50_000, 5)) < 0.02
    learned = learn_parity(np.bincount(bits @ (1 << np.arange(5)), minlength=32))
    assert learned.agreement > 0.9
    assert learned.confidence < 0.9


def test_wrong_labels_show_in_the_agreement_and_in_the_votes() -> None:
    exact = parity_table((1, 0, 1), rows=200_000, seed=9, wrong=0.2)
    assert learn_parity(exact).agreement == pytest.approx(0.8, abs=0.01)
    shares = learn_parity_by_elimination(exact, votes=4000, seed=3).shares
    # Each vote is the XOR of at most d - 1 = 3 rows (Lemma 6.1), and of two or three for most draws.
    assert 0.5 + 0.5 * 0.6**3 - 0.03 < min(shares[0], 1 - shares[1], shares[2]) < 0.8


def test_a_million_cells_are_learned_within_two_seconds() -> None:
    vector = tuple(int(bit) for bit in np.random.default_rng(10).integers(0, 2, 19))
    counts = released(parity_table(vector, rows=1_000_000, seed=11), 10, seed=12)
    began = process_time()
    learned = learn_parity(counts, DiscreteLaplace(Fraction(10)))
    assert process_time() - began < 2
    assert learned.vector == vector


def test_elimination_repeats_itself_for_a_seed_only() -> None:
    counts = released(parity_table(PAPER, rows=20_000, seed=13), 100, seed=14)
    shares = [learn_parity_by_elimination(counts, votes=200, seed=seed).shares for seed in (1, 1, 2)]
    assert shares[0] == shares[1] != shares[2]


def test_elimination_refuses_a_release_in_which_a_bit_never_stands_alone() -> None:
    both_or_none = [5, 0, 0, 0, 0, 0, 5, 0]
    with pytest.raises(QueryError, match="attribute 1 cannot be told apart"):
        learn_parity_by_elimination(both_or_none, votes=5, seed=1)


@pytest.mark.parametrize(
    "vector", [[], [1, 2, 3], [[1, 2], [3, 4]], [[1], [2, 3]], ["a", "b"], [1.0, np.nan], [2**62, 1], [1e308] * 4]
)
def test_the_transform_refuses_what_it_cannot_transform(vector: object) -> None:
    with pytest.raises(QueryError, match="transform") as refusal:
        walsh_hadamard(vector)  # type: ignore[arg-type]
    assert ". " not in str(refusal.value)


@pytest.mark.parametrize("learner", [learn_parity, learn_parity_by_elimination])
@pytest.mark.parametrize(
    "counts",
    [np.ones((2, 3)), np.ones((4, 4)), [], [1, 2, 3], [1], [5, 5], [1, 2, 3, np.inf], ["a"] * 4, [[1], [2, 3]]],
)
def test_learners_refuse_what_is_no_histogram_over_binary_attributes(learner: object, counts: object) -> None:
    with pytest.raises(QueryError, match="parity") as refusal:
        learner(counts)  # type: ignore[operator]
    assert ". " not in str(refusal.value)


def test_a_noise_that_is_no_law_is_refused() -> None:
    with pytest.raises(QueryError, match="DiscreteLaplace"):
        learn_parity([1, 2, 3, 4], 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("vector", [[0, 0], [1], [1, 2], [1, 0, 1], "11", [[1, 0]], None, [0.5, 1]])
def test_a_parity_vector_of_the_wrong_kind_is_refused(vector: object) -> None:
    with pytest.raises(QueryError, match="has 2 bits, each 0 or 1 and not all 0"):
        parity_count(np.ones((2, 2, 2)), vector)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"samples": 2}, {"votes": 0}, {"votes": 2.5}, {"votes": 10**6, "samples": 100}])
def test_elimination_refuses_impossible_numbers_of_rows(options: dict[str, object]) -> None:
    with pytest.raises(QueryError, match=r"samples|votes"):
        learn_parity_by_elimination([1] * 8, **options)  # type: ignore[arg-type]


def test_elimination_refuses_a_histogram_without_rows() -> None:
    with pytest.raises(QueryError, match="no rows can be drawn"):
        learn_parity_by_elimination([-1, 0, -3, 0])
