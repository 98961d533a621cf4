"""What refine refuses, each time in one sentence that names the user's own facts."""

import numpy as np
import pytest

from veilcube.analyst.refine import Fact, LinearRefinement, best_refinement, refine
from veilcube.errors import CapacityError, QueryError
from veilcube.query import Answer

VALUES = {"A": 3.0, "B": 4.0, "C": 8.0}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (["A + X = 3"], r"'A \+ X = 3' names 'X', which is none of the answers; use A, B, C"),
        (["A = 1", "C = 3", "B = 2", "A + B = 4"], r"^the constraints 'A = 1' and 'B = 2' and 'A \+ B = 4' contradict"),
        (["A = 1", "2*A = 3"], r"'A = 1' and '2\*A = 3' contradict"),
        (["A - A = 5"], r"'A - A = 5' can never hold"),
        (["A >= 3", "B <= 9", "A <= 2"], "^the constraints 'A >= 3' and 'A <= 2' contradict"),
        (["A + B = 5", "A >= 4", "B >= 2", "C >= 0"], r"'A \+ B = 5' and 'A >= 4' and 'B >= 2' contradict"),
        (["5 <= A <= 4"], "'5 <= A <= 4' can never hold"),
        (["C = 3", "A + B = -5"], r"^no counts obey 'A \+ B = -5', because counts are never negative"),
        (["A + B = 5", "C = 2", "A - C = 4"], r"^no counts obey 'A \+ B = 5' and 'C = 2' and 'A - C = 4'"),
        (["A + B = 5", "A + 1.00000001*B = 5"], "are the same up to rounding"),
        (["A + B"], "cannot be read"),
        ([3], "a constraint is a sentence"),
        (np.eye(3), "give B and c"),
        (7, "give B and c"),
    ],
)
def test_facts_that_cannot_be_used_are_refused_by_their_own_sentences(facts, message):
    with pytest.raises(QueryError, match=message) as refusal:
        refine(VALUES, facts)
    assert "\n" not in str(refusal.value)


def test_negative_facts_are_fine_for_answers_that_are_not_counts():
    assert refine(VALUES, "A + B = -5", counts=False).value[:2].sum() == pytest.approx(-5)
    assert refine([3.0, 4.0], B=[1, 1], c=-5).value.sum() == pytest.approx(-5)
    with pytest.raises(QueryError, match=r"no counts obey 'q1 \+ q2 = -5'"):
        refine([3.0, 4.0], B=[1, 1], c=-5, counts=True)


def test_a_fact_against_an_exact_answer_is_refused():
    for fact in ("A = 5", "A <= 2", "A + B <= 1"):
        with pytest.raises(QueryError, match=r"cannot be made to obey '.*', because their covariance says"):
            refine(VALUES, fact, covariance=[0, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0, np.nan]}, "values must hold finite numbers"),
        ({"values": [1.0, "x"]}, "values must be an array of numbers"),
        ({"values": [[1.0], [2.0]]}, "values must be a list"),
        ({"values": []}, "values must be a list"),
        ({"values": 3.0}, "values must be numbers or answers"),
        ({"values": "AB"}, "values must be numbers or answers"),
        ({"values": [Answer(1, 0, 2, 0.95, 1), 2.0]}, "some values are answers and some plain numbers"),
        ({"B": [[1, 1]]}, r"B must have one row per answer \(2\)"),
        ({"B": [1, 1, 1]}, r"B must have one row per answer \(2\)"),
        ({"B": [1, np.inf]}, "B must hold finite numbers"),
        ({"B": [[1, 2], [1]]}, "uneven rows"),
        ({"c": [1, 2]}, r"c must have one entry per column of B \(1\)"),
        ({"c": None}, "B was given without c"),
        ({"c": np.nan}, "c must hold finite numbers"),
        ({"B": None}, "c was given without B"),
        ({"covariance": [1, -1]}, "must not be negative"),
        ({"covariance": [1, np.nan]}, "covariance must hold finite numbers"),
        ({"covariance": [1, 1, 1]}, "a vector of 2 variances or a 2 by 2 matrix"),
        ({"covariance": [[1, 2], [2, 1]]}, "not positive semidefinite"),
        ({"covariance": [[-1, 0], [0, -1]]}, "not positive semidefinite"),
        ({"covariance": [[1, 0.5], [0, 1]]}, "symmetric"),
        ({"confidence": 1}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": np.nan}, "confidence must lie strictly between 0 and 1"),
        ({"names": ["A", "A"]}, "two answers have the same name"),
        ({"names": ["A"]}, "there are 2 answers but 1 names"),
        ({"names": "AB"}, "names must be a list of texts"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(arguments, message):
    usual = {"values": [1.0, 2.0], "B": [1, 1], "c": 4.0}
    with pytest.raises(QueryError, match=message):
        refine(**(usual | arguments))


def test_too_many_answers_for_dense_matrices_are_refused():
    with pytest.raises(CapacityError, match="at most 4,096 answers"):
        refine(np.zeros(5000), B=np.ones(5000), c=1)


def test_an_unknown_source_or_name_is_refused():
    with pytest.raises(QueryError, match="the source of a fact must be one of unstated, public, exact private"):
        Fact("A = 3", source="rumour")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="there is no answer named 'X'"):
        refine(VALUES, "A = 3")["X"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LinearRefinement([[1, 2]], [1], [1]), "A must be a square matrix"),
        (lambda: LinearRefinement(np.eye(2), [1, 1, 1], [1, 1]), r"D must have one row per answer \(2\)"),
        (lambda: LinearRefinement(np.eye(2), [1, 1], np.eye(2)), "D and B must have the same shape"),
        (lambda: LinearRefinement(np.eye(2), [1, 1], [1, 1], [0]), "h must have one entry per answer"),
        (lambda: best_refinement(np.zeros((2, 2, 2))), "B must have one row per answer"),
        (lambda: best_refinement([1, 1]).apply([1, 2, 3], 4), "values must end in 2 answers"),
    ],
)
def test_general_refinements_check_their_shapes(build, message):
    with pytest.raises(QueryError, match=message):
        build()
