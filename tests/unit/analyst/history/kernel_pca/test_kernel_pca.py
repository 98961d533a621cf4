"""Kernel PCA against dense linear algebra on small universes, where every query is a vector over all cells."""

import numpy as np
import pytest

from support.releases import release_of
from veilcube.analyst.history import KernelPCA, read_history
from veilcube.analyst.history.base.kernel import ProductKernel
from veilcube.errors import CapacityError, QueryError
from veilcube.planner import Marginals, Wavelet
from veilcube.query import LinearQueries, Workload
from veilcube.record import History
from veilcube.schema import Nominal, Ordinal, Schema

INFINITE = float("inf")
SMALL = Schema([Ordinal("row", 0, 3), Ordinal("column", 0, 2)])
# The worked example of ERRATA: half-open ranges (rows; columns), their answers and variances.
RANGES = np.array([(0, 2, 0, 3), (1, 4, 0, 2), (0, 4, 1, 3), (2, 3, 0, 1), (0, 2, 0, 1), (0, 2, 1, 3)], dtype=np.int64)
EXAMPLE = History(
    SMALL,
    Workload.ranges(SMALL, RANGES[:, [0, 2]], RANGES[:, [1, 3]] - 1),
    [40, 55, 70, 6, 10, 33],
    [8, 8, 2, 18, 8, 2],
)

SCHEMA = Schema([Ordinal("age", 0, 4), Nominal("sex", ["Female", "Male"]), Ordinal("pay", 0, 3)])
CELLS = np.indices(SCHEMA.shape).reshape(3, -1).T
PRIOR = {"age": [1.0, 2.0, 3.0, 2.0, 1.0], "pay": [4.0, 3.0, 2.0, 1.0]}
SHARES = np.einsum("a,b,c->abc", np.array([1, 2, 3, 2, 1]) / 9, [0.5, 0.5], np.array([4, 3, 2, 1]) / 10).ravel()
NEW = LinearQueries.concatenate(
    [LinearQueries.conditions(SCHEMA, [{"age": (1, 3), "pay": 2}, {}]), LinearQueries.moments(SCHEMA, [{"pay": 2}])]
)


def past(seed: int = 1) -> LinearQueries:
    ranges = Workload.random_ranges(SCHEMA, 12, seed)
    table = np.random.default_rng(seed).integers(0, 2, (5, 4))
    others = [LinearQueries.moments(SCHEMA, [{"age": 1}]), LinearQueries.function(SCHEMA, {("age", "pay"): table})]
    union = LinearQueries.conditions(SCHEMA, ["age = 1 OR sex = 'Male'"])
    return LinearQueries.concatenate([LinearQueries.of(ranges), *others, union])


def counts(seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).poisson(400 * SHARES).astype(float)


def noisy_history(covariance: np.ndarray, seed: int = 5) -> History:
    queries = past()
    noise = np.random.default_rng(seed).multivariate_normal(np.zeros(len(queries)), covariance)
    return History(SCHEMA, queries, queries.apply(counts().reshape(SCHEMA.shape)) + noise, covariance)


def full_covariance(size: int) -> np.ndarray:
    mixing = np.random.default_rng(9).normal(size=(size, size))
    return mixing @ mixing.T / size * 30 + np.eye(size)


def dense_ridge(
    history: History, alpha: float, shares: np.ndarray, asked: LinearQueries, exact: tuple = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the sum over cells of (x - x0)²/p, constrained exactly, plus misfit times alpha²: values and noise.

    ``exact`` holds pairs of a vector over the cells and its answer.
    """
    rows, questions = history.queries.evaluate(CELLS).T, asked.evaluate(CELLS).T
    covariance = np.diag(history.variances) if history.covariance is None else history.covariance
    precision = np.linalg.inv(covariance)
    # Stationarity of x'P^-1 x / alpha² + (a - Qx)' Σ^-1 (a - Qx) + 2 μ'(c - Ex).
    size = len(shares) + len(exact)
    system = np.zeros((size, size))
    system[: len(shares), : len(shares)] = np.diag(1 / shares) / alpha**2 + rows.T @ precision @ rows
    right = np.zeros((size, len(history) + len(exact)))
    right[: len(shares), : len(history)] = rows.T @ precision
    for number, (vector, _) in enumerate(exact, start=len(shares)):
        system[number, : len(shares)] = system[: len(shares), number] = vector
        right[number, len(history) + number - len(shares)] = 1.0
    linear = questions @ np.linalg.solve(system, right)[: len(shares)]
    known = np.array([answer for _, answer in exact])
    noise = np.einsum("qi,ij,qj->q", linear[:, : len(history)], covariance, linear[:, : len(history)])
    return linear @ np.concatenate([history.values, known]), noise


def uniform() -> np.ndarray:
    return np.full(SCHEMA.cells, 1 / SCHEMA.cells)


def test_the_worked_example_without_shrinking_is_least_squares():
    answers = KernelPCA(alpha=INFINITE).fit(EXAMPLE).answer(EXAMPLE.queries)
    expected = [41.3333333, 55, 70, 6, 8.6666667, 32.6666667]  # ERRATA.md, golden values
    assert np.allclose(answers.value, expected, rtol=0, atol=5e-8)


def test_the_worked_example_with_alpha_10_gives_the_golden_values():
    answers = KernelPCA(alpha=10).fit(EXAMPLE).answer(EXAMPLE.queries)
    expected = [40.6144589, 50.4613268, 68.4261383, 5.1303844, 7.8749174, 32.7395415]  # ERRATA.md, golden values
    assert np.allclose(answers.value, expected, rtol=0, atol=5e-8)


@pytest.mark.parametrize("most_cells", [20_000, 0], ids=["tables", "terms"])
def test_the_kernel_is_the_dense_inner_product_under_the_prior(most_cells, monkeypatch):
    monkeypatch.setattr("veilcube.analyst.history.base.kernel.MOST_CELLS", most_cells)
    monkeypatch.setattr("veilcube.analyst.history.base.kernel._PAIRS_AT_ONCE", 40)
    ages, pays = np.array([1, 2, 3, 2, 1]) / 9, np.array([4, 3, 2, 1]) / 10
    kernel = ProductKernel((ages, np.array([0.5, 0.5]), pays))
    random = np.random.default_rng(8)
    functions = [{pair: random.normal(size=(5, 4))} for pair in [("age", "pay")] * 3]
    functions += [{("pay", "sex"): random.normal(size=(4, 2))}, {("age",): random.normal(size=5)}]
    left = LinearQueries.concatenate([past(), LinearQueries.function(SCHEMA, functions)])
    right = LinearQueries.concatenate([NEW, LinearQueries.function(SCHEMA, functions[2:]), left[[3, 12]]])
    ours, theirs = left.evaluate(CELLS).T, right.evaluate(CELLS).T
    assert np.allclose(kernel.between(left, right), (ours * SHARES) @ theirs.T)
    assert np.allclose(kernel.between(left, left), (ours * SHARES) @ ours.T)
    assert np.allclose(kernel.means(left), ours @ SHARES)
    assert np.allclose(kernel.norms(left), np.square(ours) @ SHARES)


@pytest.mark.parametrize("alpha", [0.5, 20.0, 3000.0])
@pytest.mark.parametrize("prior", [None, PRIOR], ids=["uniform", "prior"])
@pytest.mark.parametrize("is_correlated", [False, True], ids=["independent", "correlated"])
@pytest.mark.parametrize("total", [None, 397.0])
def test_answers_are_those_of_dense_ridge_over_all_cells(alpha, prior, is_correlated, total):
    size = len(past())
    covariance = full_covariance(size) if is_correlated else np.diag(np.linspace(1, 40, size))
    history = noisy_history(covariance)
    answers = KernelPCA(alpha=alpha, prior=prior).fit(history, total=total).answer(NEW)
    shares = uniform() if prior is None else SHARES
    exact = () if total is None else ((np.ones(SCHEMA.cells), total),)
    value, noise = dense_ridge(history, alpha, shares, NEW, exact)
    assert np.allclose(answers.value, value, rtol=1e-7)
    assert (answers.stddev**2 >= noise * (1 - 1e-9) - 1e-20).all()


def test_the_standard_deviation_is_noise_plus_the_prior_scale_times_the_distance_to_what_is_answered():
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))
    model = KernelPCA(alpha=30.0, prior=PRIOR).fit(history, total=397.0)
    _, noise = dense_ridge(history, 30.0, SHARES, NEW, ((np.ones(SCHEMA.cells), 397.0),))
    # The weights of the history's answers in each estimate, by linearity.
    units = []
    for i in range(len(history)):
        moved = History(SCHEMA, history.queries, history.values + np.eye(len(history))[i], history.variances)
        units.append(KernelPCA(alpha=30.0, prior=PRIOR).fit(moved, total=397.0).answer(NEW).value)
    weights = (np.array(units) - model.answer(NEW).value).T
    missing = NEW.evaluate(CELLS).T - weights @ history.queries.evaluate(CELLS).T
    missing -= (missing @ SHARES)[:, np.newaxis]
    distance = np.square(missing) @ SHARES
    expected = noise + model.prior_scale**2 * distance
    # Beside that, what lies within the queries of the past: two average cells where a cell or more is not answered.
    within = model.answer(NEW).stddev ** 2 - expected
    assert (within >= -1e-5 * expected - 1e-12).all()
    known = distance < 1e-12
    assert np.allclose(within[known], 0.0, atol=1e-12)
    largest = np.abs(NEW.evaluate(CELLS)).max(axis=0)
    assert (within[~known] <= np.square(2 * 397.0 / SCHEMA.cells * (1 + largest[~known])) * (1 + 1e-9)).all()
    assert (within[~known] > 0).all()


def test_exact_answers_are_met_exactly_and_the_rest_is_the_constrained_ridge():
    queries = past()
    truth = queries.apply(counts().reshape(SCHEMA.shape))
    variances = np.full(len(queries), 30.0)
    variances[[2, 13]] = 0.0
    noise = np.sqrt(variances) * np.random.default_rng(1).normal(size=len(queries))
    history = History(SCHEMA, queries, truth + noise, variances)
    model = KernelPCA(alpha=15.0).fit(history)
    past_answers = model.answer(queries)
    assert np.allclose(past_answers.value[[2, 13]], truth[[2, 13]])
    assert np.allclose(past_answers.stddev[[2, 13]], 0.0, atol=1e-4)
    vectors = queries.evaluate(CELLS).T
    value, _ = dense_ridge(
        history[variances > 0], 15.0, uniform(), NEW, ((vectors[2], truth[2]), (vectors[13], truth[13]))
    )
    assert np.allclose(model.answer(NEW).value, value)


def test_a_history_of_exact_answers_alone_answers_what_they_determine():
    workload = Workload(SCHEMA, [{"age": 1}, {"age": 2}])
    model = KernelPCA().fit(History(SCHEMA, workload, [30.0, 50.0], [0.0, 0.0]))
    asked = model.answer(Workload(SCHEMA, [{"age": (1, 2)}, {"pay": 0}]))
    assert asked.value[0] == pytest.approx(80.0)
    assert asked.stddev[0] == pytest.approx(0.0, abs=1e-4)
    assert asked.stddev[1] > 1.0


def test_noise_that_cancels_between_answers_makes_their_sum_exact():
    workload = Workload(SCHEMA, [{"sex": "Female"}, {"sex": "Male"}, {"age": 2}])
    covariance = np.array([[9.0, -9.0, 0.0], [-9.0, 9.0, 0.0], [0.0, 0.0, 4.0]])
    history = History(SCHEMA, workload, [205.0, 192.0, 120.0], covariance)
    total = KernelPCA(alpha=50.0).fit(history).total
    assert total.value == pytest.approx(397.0)
    assert total.stddev == pytest.approx(0.0, abs=1e-3)


def test_a_known_total_is_answered_as_it_was_given():
    total = KernelPCA().fit(noisy_history(np.diag(np.full(len(past()), 25.0))), total=397).total
    assert total.value == pytest.approx(397.0, abs=1e-6)
    assert total.stddev == pytest.approx(0.0, abs=1e-3)


def test_an_unknown_total_is_estimated_by_generalised_least_squares_with_its_variance():
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))
    model = KernelPCA(prior=PRIOR).fit(history)
    rows = history.queries.evaluate(CELLS).T
    means = rows @ SHARES
    kernel = (rows * SHARES) @ rows.T - np.outer(means, means) + np.eye(len(rows)) * 25.0 / model.alpha**2
    inverse = np.linalg.inv(kernel)
    assert model.total.value == pytest.approx(means @ inverse @ history.values / (means @ inverse @ means), rel=1e-6)
    assert abs(model.total.value - counts().sum()) < 4 * model.total.stddev
    assert 0 < model.total.stddev < 100


@pytest.mark.parametrize("total", [None, 397.0])
@pytest.mark.parametrize("is_correlated", [False, True])
def test_leave_one_out_errors_are_those_of_really_leaving_answers_out(total, is_correlated):
    size = len(past())
    history = noisy_history(np.diag(np.linspace(5, 50, size)) if not is_correlated else full_covariance(size))
    model = KernelPCA(prior=PRIOR).fit(history, total=total)
    assert model.search is not None
    step = 40
    alpha = float(model.search.alphas[step])
    rows = history.queries.evaluate(CELLS).T
    covariance = np.diag(history.variances) if history.covariance is None else history.covariance
    factor = np.linalg.cholesky(covariance)
    white, scales = np.linalg.inv(factor), np.diagonal(factor)
    rows, values = white @ rows, white @ history.values
    means = rows @ SHARES
    squares = []
    for left in range(size):
        kept = np.arange(size) != left
        kernel = (rows * SHARES) @ rows.T - np.outer(means, means)
        inverse = np.linalg.inv(kernel[np.ix_(kept, kept)] + np.eye(size - 1) / alpha**2)
        known = (
            total if total is not None else means[kept] @ inverse @ values[kept] / (means[kept] @ inverse @ means[kept])
        )
        estimate = known * means[left] + kernel[left, kept] @ inverse @ (values - known * means)[kept]
        squares.append(scales[left] ** 2 * ((values[left] - estimate) ** 2 - 1))
    assert model.search.errors[step] ** 2 == pytest.approx(max(np.mean(squares), 0.0), rel=1e-6)


@pytest.mark.parametrize("total", [None, 397.0])
def test_the_most_likely_alpha_maximises_the_dense_likelihood(total):
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))
    model = KernelPCA(alpha="likelihood", prior=PRIOR).fit(history, total=total)
    rows = history.queries.evaluate(CELLS).T
    means = rows @ SHARES

    def surprise(scale: float) -> float:
        spread = scale**2 * ((rows * SHARES) @ rows.T - np.outer(means, means)) + 25.0 * np.eye(len(rows))
        inverse = np.linalg.inv(spread)
        known = total if total is not None else means @ inverse @ history.values / (means @ inverse @ means)
        rest = history.values - known * means
        integrated = 0.0 if total is not None else np.log(means @ inverse @ means)
        return float(np.linalg.slogdet(spread)[1] + rest @ inverse @ rest + integrated)

    around = [surprise(model.alpha * factor) for factor in (0.8, 0.97, 1.0, 1.03, 1.25)]
    assert np.argmin(around) == 2
    assert surprise(model.prior_scale) == pytest.approx(surprise(model.alpha) + 2.71, abs=0.02)
    assert model.prior_scale > model.alpha


@pytest.mark.parametrize("total", [None, 397.0])
def test_another_alpha_on_the_same_decomposition_is_another_fit(total):
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))
    fitted = KernelPCA(alpha=30.0, prior=PRIOR).fit(history, total=total)
    again = KernelPCA(alpha=500.0, prior=PRIOR).fit(history, total=total).with_alpha(30.0)
    assert np.allclose(again.answer(NEW).value, fitted.answer(NEW).value)
    assert np.allclose(again.answer(NEW).stddev, fitted.answer(NEW).stddev)
    assert np.allclose(again.values_for(NEW, [30.0, 500.0])[0], fitted.answer(NEW).value)


def test_an_answer_that_rests_on_one_laplace_noise_has_the_laplace_interval():
    single = History(SCHEMA, Workload(SCHEMA, [{"age": 2}]), [50.0], [2 * 10.0**2])
    answers = KernelPCA(alpha=INFINITE).fit(single).answer(single.queries)
    assert answers.high[0] - answers.value[0] == pytest.approx(10 * np.log(20))
    many = History(SCHEMA, Workload(SCHEMA, [{"age": 2}] * 200), np.full(200, 50.0), 200.0)
    together = KernelPCA(alpha=INFINITE).fit(many).answer(single.queries)
    assert (together.high[0] - together.value[0]) / together.stddev[0] == pytest.approx(1.96, abs=0.005)


def test_alpha_0_is_the_prior_times_the_total_known_or_estimated():
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))
    means = NEW.evaluate(CELLS).T @ SHARES
    assert np.allclose(KernelPCA(alpha=0, prior=PRIOR).fit(history, total=397).answer(NEW).value, 397 * means)
    free = KernelPCA(prior=PRIOR).fit(history).with_alpha(0.0)
    ours = history.queries.evaluate(CELLS).T @ SHARES
    assert np.allclose(free.answer(NEW).value, means * (ours @ history.values) / (ours @ ours))


def test_exact_answers_that_tell_the_total_leave_nothing_of_it_free():
    workload = Workload(SCHEMA, [{"sex": "Female"}, {"sex": "Male"}, {"age": 2}, {"age": (0, 1)}, {"pay": 1}])
    history = History(SCHEMA, workload, [100.0, 90.0, 50.0, 61.0, 58.0], [0.0, 0.0, 4.0, 4.0, 4.0])
    model = KernelPCA().fit(history)
    assert model.total.value == pytest.approx(190.0)
    assert model.total.stddev == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("alpha", ["loo", "cv", "likelihood"])
def test_the_shortest_histories_are_answered_with_finite_numbers(size, alpha):
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))[:size]
    for total in (None, 397.0):
        answers = KernelPCA(alpha=alpha).fit(history, total=total).answer(NEW)
        assert np.isfinite(answers.value).all()
        assert np.isfinite(answers.stddev).all()


def test_cross_validation_errors_are_those_of_fitting_without_each_group():
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))
    model = KernelPCA(alpha="cv", folds=3).fit(history, total=397.0)
    groups = np.arange(len(history)) % 3
    np.random.default_rng(20120326).shuffle(groups)
    step = 45
    alpha = float(model.search.alphas[step])
    errors = np.empty(len(history))
    for group in range(3):
        learned = KernelPCA(alpha=alpha).fit(history[groups != group], total=397.0)
        errors[groups == group] = (learned.answer(history.queries).value - history.values)[groups == group]
    assert model.search.errors[step] == pytest.approx(np.sqrt(max(np.mean(errors**2) - 25.0, 0.0)), rel=1e-6)
    assert model.alpha in model.search.alphas


def test_eigenqueries_are_orthonormal_with_uncorrelated_estimates():
    history = noisy_history(full_covariance(len(past())))
    found = KernelPCA(alpha=20.0, prior=PRIOR).fit(history).eigenqueries(first=6)
    written = found.coefficients @ history.queries.evaluate(CELLS).T
    assert np.allclose((written * SHARES) @ written.T, np.eye(6), atol=1e-8)
    assert np.allclose(found.coefficients @ history.covariance @ found.coefficients.T, np.diag(found.stddev**2))
    assert np.allclose(found.coefficients @ history.values, found.values)
    assert np.allclose(found.weights, 400 / (400 + found.stddev**2))
    assert (np.diff(found.stddev) >= 0).all()


def test_releases_and_histories_are_learned_from_together():
    table = counts().astype(int).reshape(SCHEMA.shape)
    wavelet, marginals = (release_of(SCHEMA, table, 1, 3, strategy) for strategy in (Wavelet(), Marginals(k=1)))
    history = noisy_history(np.diag(np.full(len(past()), 25.0)))

    class Ledger:
        answered = history

    merged = read_history([wavelet, marginals.record, Ledger(), history])
    assert len(merged) == len(History.of_release(wavelet.record)) + 11 + 2 * len(history)
    alone = KernelPCA(alpha=INFINITE).fit(wavelet).answer(NEW).stddev
    together = KernelPCA(alpha=INFINITE).fit([wavelet, marginals, history]).answer(NEW).stddev
    assert (together < alone).all()


def test_least_squares_on_a_wavelet_release_is_the_release_s_own_answer():
    release = release_of(SCHEMA, counts().astype(int).reshape(SCHEMA.shape), 1, 3, Wavelet())
    workload = Workload.random_ranges(SCHEMA, 20, 4)
    ours = KernelPCA(alpha=INFINITE).fit(release).answer(workload)
    theirs = release.answer(workload, estimator="least_squares")
    assert np.allclose(ours.value, theirs.value)
    assert np.allclose(ours.stddev, theirs.stddev)
    assert ours.privacy == release.privacy.words


@pytest.mark.parametrize(
    "build",
    [
        lambda: KernelPCA(alpha=-1),
        lambda: KernelPCA(alpha="best"),
        lambda: KernelPCA(alpha=float("nan")),
        lambda: KernelPCA(alpha=True),
        lambda: KernelPCA(folds=1),
        lambda: KernelPCA().fit(EXAMPLE, total=-5),
        lambda: KernelPCA().fit(EXAMPLE, total=INFINITE),
        lambda: KernelPCA().fit(EXAMPLE, total="many"),
        lambda: KernelPCA().fit([]),
        lambda: KernelPCA().fit("history"),
        lambda: KernelPCA().fit([EXAMPLE, History(SCHEMA, NEW, [1, 2, 3], 1)]),
        lambda: KernelPCA().fit(EXAMPLE).answer(NEW),
        lambda: KernelPCA().fit(EXAMPLE).answer(EXAMPLE.queries, confidence=1.0),
        lambda: KernelPCA().fit(EXAMPLE).answer(EXAMPLE.queries, confidence="high"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build):
    with pytest.raises(QueryError) as refusal:
        build()
    assert "\n" not in str(refusal.value)


def test_exact_answers_that_cannot_all_be_true_are_refused():
    workload = Workload(SCHEMA, [{"sex": "Female"}, {"sex": "Male"}, {"age": 2}])
    history = History(SCHEMA, workload, [100.0, 90.0, 50.0], [0.0, 0.0, 4.0])
    assert KernelPCA().fit(history, total=190).total.value == pytest.approx(190)
    with pytest.raises(QueryError, match="contradicts itself"):
        KernelPCA().fit(history, total=191)


def test_a_covariance_matrix_that_is_indefinite_is_refused():
    covariance = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    history = History(SCHEMA, NEW, [1.0, 2.0, 3.0], covariance)
    with pytest.raises(QueryError, match="indefinite"):
        KernelPCA().fit(history)


def test_a_history_that_does_not_fit_in_memory_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("veilcube.analyst.history.kernel_pca.fitting.available_memory", lambda: 1000)
    with pytest.raises(CapacityError, match="MaxEntropy"):
        KernelPCA().fit(EXAMPLE)


def test_a_release_of_wavelets_whose_differences_say_nothing_of_the_total_is_learned_from() -> None:
    schema = Schema([Ordinal("age", 0, 15), Nominal("sex", ["Female", "Male"])])
    counts = np.random.default_rng(2).poisson(20, schema.shape)
    release = release_of(schema, counts, epsilon=0.5, seed=1, strategy=Wavelet(flat=()))
    answers = KernelPCA().fit(read_history(release.record)).answer(Workload.random_ranges(schema, 30, seed=1))
    assert np.isfinite(answers.high).all()
    assert (answers.low < answers.high).all()
