"""The word that was meant is found by a few slips, exchanges of neighbours among them."""

from itertools import permutations, product

import pytest

from veilcube.system.words import _slips, did_you_mean, nearest


def all_pairs_distance(one: str, other: str) -> int:
    """Optimal string alignment by its definition, without any table or bound."""
    if not one or not other:
        return len(one) + len(other)
    found = min(
        all_pairs_distance(one[:-1], other) + 1,
        all_pairs_distance(one, other[:-1]) + 1,
        all_pairs_distance(one[:-1], other[:-1]) + (one[-1] != other[-1]),
    )
    if one[-2:] == other[-2:][::-1] and len(one) > 1 and len(other) > 1:
        found = min(found, all_pairs_distance(one[:-2], other[:-2]) + 1)
    return found


WORDS = ["".join(letters) for length in range(4) for letters in product("ab", repeat=length)]
WORDS += ["".join(letters) for letters in permutations("abcd")][::3]


@pytest.mark.parametrize("enough", [1, 2, 3, 9])
def test_slips_are_those_of_the_definition_up_to_the_bound(enough: int) -> None:
    for one, other in product(WORDS, repeat=2):
        assert _slips(one, other, enough) == min(all_pairs_distance(one, other), enough)


@pytest.mark.parametrize(
    ("written", "known", "meant"),
    [
        ("I1O", ["I10", "I20", "E11"], "I10"),
        ("reginon", ["region", "reason", "season"], "region"),
        ("eag", ["age", "sex"], None),  # two slips of three letters
        ("gae", ["age", "sex"], "age"),
        ("FEMALE", ["Male", "Female"], "Female"),
        ("Fem", ["Female", "Male"], "Female"),
        ("Card", ["Cardiac", "Cardiology"], None),  # two begin so
        ("AGE", ["Age", "age"], None),  # either may be meant
        ("X", ["F", "M"], None),
        ("", ["F", "M"], None),
        ("anything", [], None),
        ("a" * 1000, ["a" * 999], None),
    ],
)
def test_the_nearest_name_is_found_and_none_that_is_far(written: str, known: list[str], meant: str | None) -> None:
    assert nearest(written, known) == meant
    assert did_you_mean(written, known) == ("" if meant is None else f"did you mean {meant!r}? ")
