"""The privacy of refined answers: golden values, densities, brute force, and the sentences about dangerous facts.

What is proved in docs/proofs/refinement.md is tested here.
"""

import itertools

import numpy as np
import pytest

from veilcube.analyst.refine import Fact, best_refinement, refinement_privacy
from veilcube.errors import CapacityError, PrivacyError, QueryError

GRADES = {"A": [1, 0, 0, 0, 0], "B": [0, 1, 0, 0, 0], "C": [0, 0, 1, 0, 0], "D": [0, 0, 0, 1, 0], "F": [0, 0, 0, 0, 1],
          "p": [1, 1, 1, 1, 0], "t": [1, 1, 1, 1, 1]}  # fmt: skip
DEFINITIONS = ["A + B + C + D = p", "F + p = t"]


def least_norm(matrix, shift):
    """Return min ||v||_1 with matrix v = shift by trying every basic solution."""
    rank = np.linalg.matrix_rank(matrix)
    best = np.inf
    for columns in itertools.combinations(range(matrix.shape[1]), rank):
        part, *_ = np.linalg.lstsq(matrix[:, columns], shift, rcond=None)
        if np.allclose(matrix[:, columns] @ part, shift, atol=1e-9):
            best = min(best, np.abs(part).sum())
    return best


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_example_1_costs_twice_epsilon(epsilon):
    check = refinement_privacy(A=[[0.5, -0.5], [-0.5, 0.5]], pairs=[([1, 0], [0, 0])], scale=1 / epsilon,
                               coordinates=[0])  # fmt: skip
    assert check.loss == pytest.approx(2 * epsilon, abs=1e-9)
    assert check.epsilon == pytest.approx(epsilon)
    np.testing.assert_allclose(check.scale_needed, 2 / epsilon)


@pytest.mark.parametrize(("k", "ratio"), [(2, 1.5), (5, 3.0)])
def test_the_appendix_costs_half_of_k_plus_1(k, ratio):
    matrix, shares = [[1 / (k + 1), 1 / (k + 1)], [0, 1]], [1 / (k + 1), 0]
    pairs = [([1, 0], [0, 1])]
    assert refinement_privacy(A=matrix, pairs=pairs, scale=2, coordinates=[0]).rho == pytest.approx(ratio, abs=1e-9)
    whole = refinement_privacy(A=matrix, D=shares, B=[k, -1], pairs=pairs, epsilon=0.1, coordinates=[0])
    assert whole.loss == pytest.approx(ratio * 0.1, abs=1e-9)
    assert whole.loss_of_each[0] == pytest.approx(ratio * 0.1, abs=1e-9)


def test_all_coordinates_of_example_1_give_the_fact_away():
    check = refinement_privacy("q1 + q2 = 80", pairs=[([1, 0], [0, 0])], scale=1.0)
    assert np.isinf(check.loss)
    assert np.isinf(check.scale_needed).all()
    np.testing.assert_allclose(check.loss_of_each, [2, 0])
    assert check.explanation[0] == "the constraint 'q1 + q2 = 80' was published exactly: one record changes it"
    assert check.dangerous == ("q1 + q2 = 80",)


def test_the_loss_is_the_worst_ratio_of_the_densities_far_out():
    """The noise of Example 1's first refined answer is half the difference of two Laplace noises: its law is known."""
    x = 4000.0

    def log_density(z):
        return np.log1p(2 * abs(z)) - 2 * abs(z)

    check = refinement_privacy(B=[1, 1], pairs=[([1, 0], [0, 0])], scale=1.0, coordinates=[0])
    assert log_density(x - 1) - log_density(x) == pytest.approx(check.loss, abs=1e-3)


@pytest.mark.parametrize("seed", range(30))
def test_the_program_equals_brute_force_over_basic_solutions(seed):
    rng = np.random.default_rng(seed)
    answers = int(rng.integers(2, 6))
    facts = int(rng.integers(1, answers))
    matrix = rng.integers(-2, 3, size=(answers, facts)).astype(float)
    chosen = sorted(rng.choice(answers, size=int(rng.integers(1, answers + 1)), replace=False).tolist())
    pairs = rng.integers(0, 4, size=(3, 2, answers))
    scale = rng.uniform(0.5, 3, size=answers)
    check = refinement_privacy(B=matrix, pairs=pairs, scale=scale, coordinates=chosen)
    refining = np.round(np.asarray(best_refinement(matrix).A), 12) * scale
    expected = [least_norm(refining[chosen], (pair[0] - pair[1])[chosen].astype(float)) for pair in pairs]
    assert check.loss == pytest.approx(max(expected), abs=1e-7)
    alone = [max(least_norm(refining[[i]], (p[0] - p[1])[[i]].astype(float)) for p in pairs) for i in range(answers)]
    np.testing.assert_allclose(check.loss_of_each, alone, atol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_facts_that_do_not_follow_the_table_never_cost_more_than_epsilon(seed):
    rng = np.random.default_rng(seed)
    answers = int(rng.integers(2, 7))
    matrix = rng.normal(size=(answers, int(rng.integers(1, answers + 1))))
    query = rng.integers(0, 2, size=(answers, 5)) + np.eye(answers, 5)
    for relation in ("add-remove", "replace"):
        check = refinement_privacy(B=matrix, query=query, neighbours=relation, epsilon=0.7, data_dependent=False)
        assert check.loss <= 0.7 + 1e-12
        assert check.is_post_processing
        assert check.explanation[0].startswith("post-processing is safe")


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_definitions_are_recognised_as_safe_without_being_told(relation):
    check = refinement_privacy(DEFINITIONS, query=GRADES, neighbours=relation, epsilon=1.0)
    assert check.is_post_processing
    assert check.loss == pytest.approx(1.0)
    assert check.dangerous == ()


def test_only_the_fact_that_one_record_changes_is_named():
    check = refinement_privacy([*DEFINITIONS, "A + B = 80"], query=GRADES, epsilon=1.0)
    assert check.dangerous == ("A + B = 80",)
    assert str(check).splitlines() == [
        "the constraint 'A + B = 80' was published exactly: one record changes it",
        "some refined answers are possible on one table and impossible on its neighbour: no noise hides it",
    ]


def test_a_total_is_safe_under_replace_and_dangerous_under_add_remove():
    facts = [*DEFINITIONS, "t = 149"]
    assert refinement_privacy(facts, query=GRADES, neighbours="replace", epsilon=1.0).is_post_processing
    assert refinement_privacy(facts, query=GRADES, epsilon=1.0).dangerous == ("t = 149",)


def test_a_fact_marked_public_is_safe():
    public = Fact("A + B = 80", source="public")
    assert refinement_privacy([*DEFINITIONS, public], query=GRADES, epsilon=1.0).rho <= 1 + 1e-12
    flags = [True, True, False]
    assert refinement_privacy([*DEFINITIONS, "A + B = 80"], query=GRADES, epsilon=1.0, data_dependent=flags).rho <= 1


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_all_neighbours_equal_the_same_neighbours_given_as_pairs(relation):
    cells = 4
    unit = np.eye(cells)
    pairs = [(unit[i], 0 * unit[i]) for i in range(cells)]
    if relation == "replace":
        pairs = [(unit[i], unit[j]) for i in range(cells) for j in range(cells) if i != j]
    facts = {"B": [1, 2, 1, 0], "scale": 2.0, "coordinates": [0, 2]}
    listed = refinement_privacy(pairs=pairs, **facts)
    every = refinement_privacy(neighbours=relation, **facts)
    assert every.loss == pytest.approx(listed.loss, abs=1e-9)
    np.testing.assert_allclose(every.loss_of_each, listed.loss_of_each)
    assert every.epsilon == (0.5 if relation == "add-remove" else 1.0)


def test_the_noise_that_is_said_to_restore_epsilon_restores_it():
    facts = {"B": [1, 2, 1], "coordinates": [0, 1]}
    before = refinement_privacy(epsilon=0.5, **facts)
    assert before.loss > 0.5
    after = refinement_privacy(scale=before.scale_needed, **facts)
    assert after.loss == pytest.approx(0.5)


def test_facts_that_fix_everything_leave_no_noise_to_hide_behind():
    check = refinement_privacy(B=np.eye(3)[:, [2, 0, 1]] + 1e-3, epsilon=1.0)
    assert np.isinf(check.loss)
    assert np.isinf(check.loss_of_each).all()


def test_coordinates_may_be_named():
    by_name = refinement_privacy(["A + B = 80"], query=GRADES, epsilon=1.0, coordinates=["B"])
    by_position = refinement_privacy(["A + B = 80"], query=GRADES, epsilon=1.0, coordinates=[1])
    assert by_name.rho == by_position.rho == pytest.approx(by_name.rho_of_each[1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"B": None}, QueryError, "there is no refinement to judge"),
        ({"B": None, "names": ["a", "b"]}, QueryError, "there is no refinement to judge"),
        ({"scale": None}, PrivacyError, "the noise is not known"),
        ({"scale": 0}, PrivacyError, "scale must be one positive number"),
        ({"scale": [1, 1, 1]}, PrivacyError, "scale must be one positive number"),
        ({"scale": np.nan}, QueryError, "scale must hold finite numbers"),
        ({"epsilon": -1}, PrivacyError, "epsilon must be a positive number"),
        ({"epsilon": 1}, PrivacyError, "not both"),
        ({"epsilon": "1"}, PrivacyError, "epsilon must be a positive number"),
        ({"neighbours": "friends"}, PrivacyError, "neighbours='friends' is not known"),
        ({"pairs": [[1, 2, 3]]}, QueryError, "pairs must be a list of pairs"),
        ({"pairs": [([1, 2, 3], [1, 2, 3])]}, QueryError, "with 2 numbers each"),
        ({"pairs": [([1, 2], [1, np.nan])]}, QueryError, "pairs must hold finite numbers"),
        ({"pairs": [([1, 2], [1, 1])], "query": np.eye(2)}, QueryError, "not both"),
        ({"query": np.eye(3)}, QueryError, r"query must have one row per answer \(2\)"),
        ({"query": [1, 2]}, QueryError, "query must have one row per answer"),
        ({"A": [[1, 2, 3]]}, QueryError, "B must have one row per answer"),
        ({"A": [[1, 2, 3], [1, 2, 3]]}, QueryError, "A must be a square matrix"),
        ({"coordinates": [2]}, QueryError, "there is no answer 2; coordinates are names or positions 0 to 1"),
        ({"coordinates": []}, QueryError, "coordinates must be a list"),
        ({"coordinates": ["x"]}, QueryError, "there is no answer 'x'"),
        ({"data_dependent": [True, False]}, QueryError, "data_dependent must be True, False"),
        ({"data_dependent": "no"}, QueryError, "data_dependent must be True, False"),
        ({"constraints": "q1 <= 3"}, QueryError, "known for equalities only"),
        ({"constraints": "q1 = x"}, QueryError, "names 'x'"),
        ({"constraints": Fact("q1 = 1", "public"), "A": np.eye(2)}, QueryError, "give D as well"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, error, message):
    with pytest.raises(error, match=message) as refusal:
        refinement_privacy(**({"B": [1, 1], "scale": 1.0} | arguments))
    assert "\n" not in str(refusal.value)


def test_too_many_pairs_of_cells_are_refused():
    with pytest.raises(CapacityError, match="give the pairs that matter"):
        refinement_privacy(B=np.ones(500), neighbours="replace", epsilon=1.0)


def test_the_loss_has_its_earlier_name_too():
    check = refinement_privacy(B=[1, 1], pairs=[([1, 0], [0, 0])], epsilon=0.5, coordinates=[0])
    assert check.rho == check.loss == pytest.approx(1.0)
    assert check.rho_of_each is check.loss_of_each
