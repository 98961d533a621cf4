"""Sentences over names: what they state, and what cannot be read."""

import pytest

from veilcube.analyst.refine.facts.sentences import read_sentence
from veilcube.errors import QueryError


@pytest.mark.parametrize(
    ("sentence", "weights", "comparison", "constant"),
    [
        ("A + B + C + D = passed", {"A": 1, "B": 1, "C": 1, "D": 1, "passed": -1}, "=", 0),
        ("F + passed = 149", {"F": 1, "passed": 1}, "=", 149),
        ("2*A - B = 3", {"A": 2, "B": -1}, "=", 3),
        ("-(A - 2*(B + 1))/2 == .5e1", {"A": -0.5, "B": 1}, "=", 4),
        ("A*3 >= B + 1", {"A": -3, "B": 1}, "<=", -1),
        ("A ≤ passed", {"A": 1, "passed": -1}, "<=", 0),
        ("`30 to 39` + größe = - - 2", {"30 to 39": 1, "größe": 1}, "=", 2),
        ("A = A", {"A": 0}, "=", 0),
    ],
)
def test_a_sentence_becomes_weights_and_a_constant(sentence, weights, comparison, constant):
    (relation,) = read_sentence(sentence)
    assert relation.weights == weights
    assert (relation.comparison, relation.constant) == (comparison, constant)


def test_a_chain_states_one_relation_per_sign():
    lower, upper = read_sentence("0 <= F <= 10")
    assert (lower.weights, lower.comparison, lower.constant) == ({"F": -1}, "<=", 0)
    assert (upper.weights, upper.comparison, upper.constant) == ({"F": 1}, "<=", 10)


@pytest.mark.parametrize(
    "sentence",
    ["", "A", "A +", "A + = 3", "2A = 3", "A < 3", "A * B = 3", "A / B = 1", "A / 0 = 1", "(A = 3", "A) = 3", "A = 3 $",
     "A ** 2 = 1", "A = 1e999", "A = `", "= 3", "(" * 5000 + "A" + ")" * 5000 + " = 1", "A, B = 3"],
)  # fmt: skip
def test_a_sentence_that_cannot_be_read_is_refused_in_one_sentence(sentence):
    with pytest.raises(QueryError, match=r"cannot be read: .*; write it like") as refusal:
        read_sentence(sentence)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_something_that_is_no_text_is_refused():
    with pytest.raises(QueryError, match="a constraint is a sentence"):
        read_sentence(80)  # type: ignore[arg-type]
