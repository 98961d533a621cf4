"""Maximum entropy: the exact dual against brute force, the chains against the exact dual, and what is refused."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

import veilcube as vc
from support.releases import release_of
from veilcube.errors import QueryError
from veilcube.query import LinearQueries

COIN = vc.Schema([vc.Nominal("side", ["heads", "tails"])])
SMALL = vc.Schema([vc.Ordinal("x", 0, 5), vc.Nominal("y", list("abcd")), vc.Nominal("z", list("uvw"))])
ROWS = 20_000.0


def coin_history(share: float, scale: float, rows: float = 10.0) -> vc.History:
    return vc.History(COIN, vc.Workload(COIN, [{"side": "heads"}]), [share * rows], [2 * scale**2])


def skewed_counts(seed: int = 1) -> NDArray[np.float64]:
    counts = np.random.default_rng(seed).gamma(0.7, size=SMALL.shape)
    return counts * ROWS / counts.sum()


def small_history(scale: float = 40.0, seed: int = 2, queries: LinearQueries | None = None) -> vc.History:
    asked = LinearQueries.of(vc.Workload.marginals(SMALL, 2)) if queries is None else queries
    exact = asked.apply(skewed_counts())
    noise = np.random.default_rng(seed).laplace(0, scale, exact.size)
    return vc.History(SMALL, asked, exact + noise, np.full(exact.size, 2 * scale**2))


@pytest.mark.parametrize(("beta", "weight", "chance"), [(1, 1.0, 0.73105858), (5, 2.19722458, 0.9)])
def test_the_dual_of_one_query_on_two_values_is_known_in_closed_form(beta: int, weight: float, chance: float) -> None:
    # ERRATA, golden values: w = min(beta, ln(.9/.1)) and p = 1/(1 + exp(-w)).
    model = vc.MaxEntropy(alpha=beta / 10).fit(coin_history(0.9, 1.0), total=10)
    assert model.weights[0] == pytest.approx(weight, abs=1e-7)
    assert model.distribution("side")[0] == pytest.approx(chance, abs=1e-8)


def primal_by_brute_force(history: vc.History, alpha: float, prior: NDArray[np.float64]) -> float:
    """The least value of KL(p || p0) + Σ β|π - p[f]|, by a solver that knows nothing of duals: slacks and SLSQP."""
    weights = history.queries.evaluate(np.indices(SMALL.shape).reshape(3, -1).T).T
    shares, beta = history.values / ROWS, alpha * ROWS / np.sqrt(history.variances / 2)
    cells, m = prior.size, len(history)
    start = np.concatenate([prior, np.abs(shares - weights @ prior)])
    found = minimize(
        lambda v: float(v[:cells] @ np.log(v[:cells] / prior) + beta @ v[cells:]),
        start,
        jac=lambda v: np.concatenate([np.log(v[:cells] / prior) + 1, beta]),
        method="SLSQP",
        bounds=[(1e-9, 1)] * cells + [(0, None)] * m,
        constraints=[
            {"type": "eq", "fun": lambda v: v[:cells].sum() - 1, "jac": lambda v: np.r_[np.ones(cells), np.zeros(m)]},
            {"type": "ineq", "fun": lambda v: v[cells:] - (shares - weights @ v[:cells]),
             "jac": lambda v: np.hstack([weights, np.eye(m)])},
            {"type": "ineq", "fun": lambda v: v[cells:] + (shares - weights @ v[:cells]),
             "jac": lambda v: np.hstack([-weights, np.eye(m)])},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert found.success, found.message
    return float(found.fun)


@pytest.mark.parametrize("alpha", [0.0005, 0.003])
@pytest.mark.parametrize("kind", ["ranges", "moments"])
def test_the_exact_dual_reaches_the_least_value_of_the_primal(alpha: float, kind: str) -> None:
    if kind == "ranges":
        asked = LinearQueries.of(vc.Workload.random_ranges(SMALL, 8, seed=4))
    else:
        asked = LinearQueries.concatenate(
            [
                LinearQueries.moments(SMALL, [{"x": 1}, {"x": 2}]),
                LinearQueries.conditions(SMALL, ["y = 'a' OR z = 'u'"]),
            ]
        )
    law = np.arange(1.0, 7.0) / 21
    history = small_history(queries=asked)
    model = vc.MaxEntropy(alpha=alpha, prior={"x": law}).fit(history, total=ROWS)
    prior = np.broadcast_to(law[:, None, None] / 12, SMALL.shape).ravel()
    chances = model.distribution(SMALL.names).ravel()
    beta = alpha * ROWS / np.sqrt(history.variances / 2)
    misfit = np.abs(history.values / ROWS - asked.apply(chances.reshape(SMALL.shape)))
    ours = float(chances @ np.log(chances / prior) + beta @ misfit)
    assert ours == pytest.approx(primal_by_brute_force(history, alpha, prior), abs=2e-6)


def distance_of_engines(alpha: float, shift: float = 0.0) -> float:
    """Total variation between the chains' distribution and the exact one for an alpha that may be a little off."""
    history = small_history()
    chains = vc.MaxEntropy(alpha=alpha, engine="gibbs").fit(history, total=ROWS)
    exact = vc.MaxEntropy(alpha=alpha * (1 + shift), engine="exact").fit(history, total=ROWS)
    assert chains.convergence.converged
    far = [np.abs(chains.distribution(pair) - exact.distribution(pair)).sum() / 2 for pair in combinations("xyz", 2)]
    return float(max(far))


def test_the_chains_find_the_exact_distribution_and_not_that_of_a_box_three_percent_wider() -> None:
    near, far = distance_of_engines(0.0005), distance_of_engines(0.0005, shift=0.03)
    assert near < 0.0015
    assert far > 2 * near


def test_the_chains_find_the_distribution_of_ranges_too() -> None:
    history = small_history(queries=LinearQueries.of(vc.Workload.random_ranges(SMALL, 40, seed=3)))
    chains = vc.MaxEntropy(alpha=0.002, engine="gibbs").fit(history, total=ROWS)
    exact = vc.MaxEntropy(alpha=0.002, engine="exact").fit(history, total=ROWS)
    assert np.abs(chains.distribution(SMALL.names) - exact.distribution(SMALL.names)).sum() / 2 < 0.01


@pytest.mark.slow
def test_the_published_descent_ends_near_the_exact_distribution() -> None:
    model = vc.MaxEntropy(alpha=0.5, engine="sgd", steps=200_000, rate=1e-3).fit(coin_history(0.9, 1.0), total=10)
    assert model.distribution("side")[0] == pytest.approx(0.9, abs=0.02)
    three = vc.MaxEntropy(alpha=0.0005, engine="sgd", steps=100_000, rate=2e-3).fit(small_history(), total=ROWS)
    exact = vc.MaxEntropy(alpha=0.0005).fit(small_history(), total=ROWS)
    assert np.abs(three.distribution(("x", "y")) - exact.distribution(("x", "y"))).sum() < 0.05


def test_more_alpha_brings_the_model_nearer_to_the_answers_and_none_leaves_the_prior() -> None:
    history = small_history()
    misfits = [
        np.abs(vc.MaxEntropy(alpha=alpha).fit(history, total=ROWS).answer(history.queries).value - history.values).sum()
        for alpha in (0.0, 0.0003, 0.003)
    ]
    assert misfits[0] > misfits[1] > misfits[2]
    prior = {"x": np.arange(1.0, 7.0)}
    untouched = vc.MaxEntropy(alpha=0, prior=prior).fit(history, total=ROWS).distribution("x")
    np.testing.assert_allclose(untouched, np.arange(1.0, 7.0) / 21, atol=1e-12)


@pytest.mark.slow
def test_the_chosen_alpha_has_nearly_the_least_error() -> None:
    truth, history = skewed_counts(), small_history(scale=150.0)
    exact = history.queries.apply(truth)

    def error(alpha: float | str) -> float:
        model = vc.MaxEntropy(alpha=alpha).fit(history, total=ROWS)
        return float(np.sqrt(np.mean(np.square(model.answer(history.queries).value - exact))))

    tried = [error(150 / ROWS * width) for width in (1 / 64, 1 / 16, 1 / 4, 1, 4, 16)]
    assert error("auto") < 1.1 * min(tried)
    assert min(tried) < np.sqrt(np.mean(np.square(history.values - exact)))


@pytest.mark.slow
def test_intervals_hold_the_true_answers_to_past_queries() -> None:
    exact = LinearQueries.of(vc.Workload.marginals(SMALL, 2)).apply(skewed_counts())
    held = []
    for seed in range(6):
        history = small_history(seed=seed)
        found = vc.MaxEntropy().fit(history, total=ROWS).answer(history.queries)
        held.append(np.mean((found.low <= exact) & (exact <= found.high)))
    assert np.mean(held) >= 0.93


def test_an_interval_is_as_wide_as_the_noise_where_the_answer_is_met() -> None:
    found = (
        vc.MaxEntropy(alpha=1)
        .fit(coin_history(0.4, 500.0, 1e6), total=1e6)
        .answer(vc.Workload(COIN, [{"side": "heads"}]))[0]
    )
    assert found.value == pytest.approx(400_000, rel=1e-4)
    assert found.stddev == pytest.approx(500 * np.sqrt(2), rel=0.05)


def test_exact_answers_are_met_and_an_unknown_total_is_estimated_with_its_variance() -> None:
    exact = np.array([600.0, 400.0])
    asked = vc.Workload(COIN, [{"side": "heads"}, {"side": "tails"}])
    model = vc.MaxEntropy(alpha=1).fit(vc.History(COIN, asked, exact, [0.0, 0.0]))
    np.testing.assert_allclose(model.answer(asked).value, exact, rtol=1e-6)
    noisy = vc.MaxEntropy(alpha=1).fit(vc.History(COIN, asked, exact, [800.0, 200.0]))
    assert noisy.total.value == pytest.approx(1000)
    assert noisy.total.stddev == pytest.approx(np.sqrt(1000), rel=0.01)
    halves = vc.Workload(SMALL, [{"x": (0, 2)}, {"x": (3, 5)}, {"x": (0, 3)}, {"x": (4, 5)}])
    combined = vc.MaxEntropy(alpha=1).fit(vc.History(SMALL, halves, [60.0, 40.0, 68.0, 42.0], [8.0, 8.0, 2.0, 2.0]))
    assert combined.total.value == pytest.approx((100 / 16 + 110 / 4) / (1 / 16 + 1 / 4))
    assert combined.total.stddev == pytest.approx(np.sqrt(1 / (1 / 16 + 1 / 4)))
    with pytest.raises(QueryError, match="say it with total"):
        vc.MaxEntropy(alpha=1).fit(coin_history(0.9, 1.0))


@pytest.mark.parametrize("engine", ["exact", "gibbs", "sgd"])
def test_the_total_alone_teaches_the_total_and_a_moment_moves_the_mean(engine: str) -> None:
    settings = vc.MaxEntropy(alpha=1, engine=engine, steps=60_000, rate=2e-3)
    only = settings.fit(vc.History(SMALL, LinearQueries.everything(SMALL), [500.0], [100.0]))
    assert (only.total.value, only.total.stddev) == (pytest.approx(500), pytest.approx(10))
    np.testing.assert_allclose(only.distribution("x"), 1 / 6, atol=0.02)
    mean = LinearQueries.moments(SMALL, [{"x": 1}])
    moved = settings.fit(vc.History(SMALL, mean, [1500.0], [100.0]), total=500)
    # The published descent ends at its last step, which goes on trembling.
    assert moved.distribution("x") @ np.arange(6) == pytest.approx(3.0, abs=0.3 if engine == "sgd" else 0.02)


def test_a_distribution_has_its_axes_in_the_order_asked_for() -> None:
    model = vc.MaxEntropy().fit(small_history(), total=ROWS)
    np.testing.assert_allclose(model.distribution(("z", "x")), model.distribution(("x", "z")).T)
    assert model.distribution(("y",)).sum() == pytest.approx(1)
    with pytest.raises(QueryError, match="each named once"):
        model.distribution(("x", "x"))


@pytest.mark.slow
def test_releases_and_histories_teach_together() -> None:
    counts = np.round(skewed_counts()).astype(np.int64)
    releases = [release_of(SMALL, counts, epsilon="1/20", seed=5, strategy=name) for name in ("wavelet", "identity")]
    together = vc.MaxEntropy().fit([*releases, small_history(scale=5.0)], total=float(counts.sum()))
    alone = vc.MaxEntropy().fit(releases[1], total=float(counts.sum()))
    truth = counts / counts.sum()
    errors = [np.abs(model.distribution(SMALL.names) - truth).sum() for model in (together, alone)]
    assert errors[0] < errors[1] < 0.15


def test_bad_input_is_refused_or_warned_about_in_one_sentence() -> None:
    history = small_history()
    for settings in ({"alpha": -1}, {"alpha": "loo"}, {"engine": "magic"}, {"steps": 0}):
        with pytest.raises(QueryError):
            vc.MaxEntropy(**settings)
    model = vc.MaxEntropy(alpha=0.001).fit(history, total=ROWS)
    with pytest.raises(QueryError, match="another schema"):
        model.answer(vc.Workload(COIN, [{"side": "heads"}]))
    with pytest.raises(QueryError, match="confidence"):
        model.answer(history.queries, confidence=95)
    with pytest.raises(QueryError, match="the history is empty"):
        vc.MaxEntropy().fit([])
    with pytest.raises(QueryError, match="number of rows"):
        vc.MaxEntropy().fit(history, total=-5)
    with pytest.warns(UserWarning, match="has zeros"):
        vc.MaxEntropy(alpha=0.001, prior={"y": [1, 0, 1, 1]}).fit(history, total=ROWS)
    contradiction = vc.History(COIN, vc.Workload(COIN, [{"side": "heads"}, {"side": "tails"}]), [600, 700], [0, 0])
    with pytest.raises(QueryError, match="contradicts itself"):
        vc.MaxEntropy(alpha=1).fit(contradiction, total=1000)
    too_many = vc.History(COIN, vc.Workload(COIN, [{"side": "heads"}]), [1200], [0])
    with pytest.warns(UserWarning, match="no distribution meets"):
        vc.MaxEntropy(alpha=1).fit(too_many, total=1000)


def test_a_covariance_is_not_used_silently() -> None:
    asked = vc.Workload(COIN, [{"side": "heads"}, {"side": "tails"}])
    history = vc.History(COIN, asked, [6.0, 4.0], [[2.0, 1.0], [1.0, 2.0]])
    with pytest.warns(UserWarning, match="covariances of this history are not used"):
        vc.MaxEntropy(alpha=1).fit(history, total=10)


def test_a_query_over_too_many_cells_is_refused_and_the_work_does_not_grow_with_the_universe() -> None:
    wide = vc.Schema([vc.Ordinal(f"a{number}", 0, 19) for number in range(8)])
    pairs = [{f"a{number}": (0, 9), f"a{number + 1}": (10, 19)} for number in range(7)]
    history = vc.History(wide, vc.Workload(wide, pairs), np.full(7, 400.0), np.full(7, 200.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = vc.MaxEntropy(alpha=0.01).fit(history, total=1000)
    assert model.convergence.engine == "exact"  # of 20^8 cells the history tells 2^8 apart
    assert model.answer(vc.Workload(wide, pairs[:1])).value[0] > 300
    everything = vc.Workload(wide, [{f"a{number}": (cell, cell + 9) for number in range(8)} for cell in range(9)])
    assert (model.answer(everything).value >= 0).all()
    with pytest.raises(QueryError, match="KernelPCA"):
        vc.MaxEntropy().fit(vc.History(wide, everything, np.ones(9), np.ones(9)), total=1000)


def test_chains_follow_what_the_history_tells_apart_where_that_is_too_much_to_hold() -> None:
    wide = vc.Schema([vc.Ordinal(f"a{number}", 0, 999) for number in range(6)])
    pairs = [
        {f"a{number}": (10 * step, 10 * step + 499), f"a{number + 1}": (100 * step, 999)}
        for number in range(5)
        for step in range(1, 9)
    ]
    asked = vc.Workload(wide, pairs)
    true = np.prod((asked.high - asked.low + 1) / 1000, axis=1) * 1000
    model = vc.MaxEntropy(alpha=1).fit(vc.History(wide, asked, true, np.full(40, 200.0)), total=1000)
    assert model.convergence.engine == "gibbs"
    np.testing.assert_allclose(model.answer(asked).value, true, atol=60)
    rows = next(model.rows(1000))
    assert rows.min() >= 0
    assert 900 < rows.max() < 1000


def test_progress_goes_from_nothing_to_all() -> None:
    seen: list[float | None] = []
    vc.MaxEntropy(engine="gibbs").fit(small_history(scale=400.0), total=ROWS, progress=seen.append)
    shares = [share for share in seen if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
