"""History: what it keeps, what it refuses, and every kind of release read as history."""

import numpy as np
import pytest

from support.releases import release_of
from veilcube.errors import CapacityError, QueryError
from veilcube.planner import Adaptive, GroupedTables, KdTree, Marginals, Tree, Wavelet
from veilcube.query import LinearQueries, Workload
from veilcube.record import History
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema(
    [Ordinal("age", 0, 10), Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge", "Clerk", "Usher"]})]
)
OTHER = Schema([Ordinal("age", 0, 11)])
WORKLOAD = Workload(SCHEMA, [{"age": (3, 7)}, {"job": "Care"}, {"age": 4, "job": "Law"}])
COUNTS = np.random.default_rng(2).integers(0, 40, SCHEMA.shape)


def history(values=(1.0, 2.0, 3.0), variances=(4.0, 4.0, 4.0), workload=WORKLOAD) -> History:
    return History(SCHEMA, workload, values, variances)


def test_a_history_keeps_queries_in_product_form_with_answers_and_variances():
    kept = history()
    assert isinstance(kept.queries, LinearQueries)
    assert (len(kept), kept.values.tolist(), kept.variances.tolist()) == (3, [1.0, 2.0, 3.0], [4.0, 4.0, 4.0])
    assert kept.covariance is None


def test_what_was_given_cannot_be_changed_afterwards():
    values = np.array([1.0, 2.0, 3.0])
    kept = history(values)
    values[0] = 99.0
    assert kept.values[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        kept.values[0] = 5.0


def test_a_covariance_matrix_is_kept_and_its_diagonal_are_the_variances():
    covariance = np.array([[4.0, 1.0, 0.0], [1.0, 9.0, -2.0], [0.0, -2.0, 1.0]])
    kept = history(variances=covariance)
    assert np.array_equal(kept.covariance, covariance)
    assert kept.variances.tolist() == [4.0, 9.0, 1.0]


def test_a_diagonal_covariance_matrix_is_kept_as_variances():
    assert history(variances=np.diag([1.0, 2.0, 0.0])).covariance is None


def test_merging_keeps_the_order_and_joins_covariances_as_blocks():
    correlated = history(variances=[[4.0, 1.0, 0.0], [1.0, 9.0, 0.0], [0.0, 0.0, 1.0]])
    merged = History.merge(history(), correlated)
    assert merged.values.tolist() == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
    assert merged.covariance[3, 4] == 1.0
    assert merged.covariance[0, 3] == 0.0
    assert merged.variances.tolist() == [4.0, 4.0, 4.0, 4.0, 9.0, 1.0]
    assert np.array_equal(merged.queries[3:].apply(COUNTS), correlated.queries.apply(COUNTS))


def test_a_part_of_a_history_takes_its_part_of_the_noise():
    covariance = np.array([[4.0, 1.0, 0.0], [1.0, 9.0, -2.0], [0.0, -2.0, 1.0]])
    part = history(variances=covariance)[[2, 1]]
    assert part.values.tolist() == [3.0, 2.0]
    assert part.covariance.tolist() == [[1.0, -2.0], [-2.0, 9.0]]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: history(values=[1.0]), "one answer for each query"),
        (lambda: history(values=[1.0, np.nan, 3.0]), "finite"),
        (lambda: history(values=["a", "b", "c"]), "numbers"),
        (lambda: history(values=[10**400, 1, 2]), "numbers"),
        (lambda: history(variances=[1e300, 1.0, 1.0]), "beyond"),
        (lambda: history()[[100]], "list of positions"),
        (lambda: history()[np.array([True])], "mask of length 3"),
        (lambda: history()[1], "slice"),
        (lambda: history(variances=[1.0, 2.0]), "variances"),
        (lambda: history(variances=[1.0, -2.0, 1.0]), "below 0"),
        (lambda: history(variances=[[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "covariance"),
        (lambda: history(variances=[[1.0, 0.5, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]]), "symmetric"),
        (lambda: History(OTHER, WORKLOAD, [1, 2, 3], [1, 1, 1]), "another schema"),
        (lambda: History("adult", WORKLOAD, [1, 2, 3], [1, 1, 1]), "Schema"),
        (lambda: History(SCHEMA, LinearQueries.of_terms(SCHEMA, []), [], []), "empty"),
        (History.merge, "at least one"),
        (lambda: History.merge(history(), History(OTHER, Workload(OTHER, [{}]), [1], [1])), "different schemas"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, says):
    with pytest.raises(QueryError, match=says) as refusal:
        build()
    assert "\n" not in str(refusal.value)


def test_exact_answers_to_one_query_that_disagree_are_refused_also_across_histories():
    twice = Workload(SCHEMA, [{"age": (3, 7)}, {"age": (3, 7)}])
    with pytest.raises(QueryError, match="contradicts itself"):
        History(SCHEMA, twice, [5.0, 6.0], [0.0, 0.0])
    first, second = (History(SCHEMA, Workload(SCHEMA, [{"age": 3}]), [value], [0.0]) for value in (5.0, 6.0))
    with pytest.raises(QueryError, match="contradicts itself"):
        History.merge(first, second)


def test_exact_answers_that_agree_and_noisy_ones_that_do_not_are_history():
    twice = Workload(SCHEMA, [{"age": (3, 7)}, {"age": (3, 7)}])
    assert len(History(SCHEMA, twice, [5.0, 5.0], [0.0, 0.0])) == 2
    assert len(History(SCHEMA, twice, [5.0, 6.0], [0.0, 1.0])) == 2


STRATEGIES = ["identity", Tree(), Wavelet(), Marginals(k=1), Adaptive(), KdTree(), GroupedTables(), "auto"]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_every_kind_of_release_without_noise_is_history_with_true_answers(strategy):
    release = release_of(SCHEMA, COUNTS, epsilon=1, strategy=strategy)
    learned = History.of_release(release.record)
    assert len(learned) == sum(part.values.size for part in release.record.measurements)
    assert np.allclose(learned.queries.apply(COUNTS), learned.values)
    assert learned.privacy == release.privacy.words


def test_the_variance_is_that_of_the_noise_law_over_the_square_of_a_marginals_multiplier():
    record = release_of(SCHEMA, COUNTS, epsilon=1, strategy=Marginals(k=1)).record
    (part,) = record.measurements
    multipliers = np.repeat(part.operator.multipliers, SCHEMA.shape)
    assert np.allclose(History.of_release(record).variances, part.noise.variance / multipliers**2)


def test_a_release_with_too_many_measurements_is_refused():
    record = release_of(SCHEMA, COUNTS).record
    with pytest.raises(QueryError, match="too many"):
        History.of_release(record, most_rows=10)


def test_equal_promises_of_different_sources_are_counted_and_those_of_parts_are_kept():
    told = [History(SCHEMA, WORKLOAD, [1, 2, 3], 1.0, privacy=words) for words in ("A", "B", "A", "")]
    merged = History.merge(History.merge(*told[:2]), *told[2:])
    assert merged.promises == ("A", "B", "A")
    assert merged.privacy == "2 sources, each: A; B"
    assert merged[:2].privacy == merged.privacy


def test_a_release_of_several_measurements_is_one_promise():
    release = release_of(SCHEMA, np.ones(SCHEMA.shape, dtype=np.int64), 1, 3, Marginals(k=1))
    assert History.of_release(release.record).promises == (release.privacy.words,)


def test_a_covariance_whose_zeros_are_rounding_is_history():
    covariance = np.diag([4.0, 9.0, 1.0])
    covariance[0, 1], covariance[1, 0] = 1e-16, -2e-17
    assert history(variances=covariance).variances.tolist() == [4.0, 9.0, 1.0]


def test_rows_that_memory_does_not_hold_are_refused_before_they_are_written_out(monkeypatch):
    release = release_of(SCHEMA, COUNTS, 1, 3, Tree(refine=False))
    monkeypatch.setattr("veilcube.system.memory.available_memory", lambda: 1000)
    with pytest.raises(CapacityError, match="ask the release itself"):
        History.of_release(release.record)
