"""What a page lets people choose of an attribute."""

import numpy as np
import pytest

import veilcube as vc
from veilcube.analyst.publish.cutting import MOST_NAMES, cut

MANY = [f"v{number}" for number in range(MOST_NAMES + 1)]


def test_every_cell_is_in_one_run_and_every_run_has_a_label() -> None:
    attributes = [
        vc.Ordinal("age", 17, 90, missing="cell", outside="other"),
        vc.Ordinal("pay", edges=np.linspace(0, 1, 1500).tolist()),
        vc.Ordinal("day", "2020", "2024", unit="day"),
        vc.Nominal("job", ["a", "b"], missing="cell"),
        vc.Nominal("place", hierarchy={f"g{number % 30}": MANY[number::30] for number in range(30)}),
    ]
    for attribute in attributes:
        found = cut(attribute)
        sizes = found.runs.sizes
        assert (sizes.sum(), sizes.min() > 0) == (attribute.size, True)
        assert (found.runs.first[1:] == found.runs.last[:-1] + 1).all()
        assert len(found.labels) == len(found.runs)
        assert found.regular == len(found.runs) - (attribute.size - attribute.regular_size)
        assert len(found.runs) <= 402


def test_runs_say_from_where_to_where_they_reach() -> None:
    ages, pay, day = (
        vc.Ordinal("age", 0, 9),
        vc.Ordinal("pay", edges=[0, 1, 2.5, 4]),
        vc.Ordinal("day", "2024-01", "2024-05", unit="month"),
    )
    assert cut(ages, 4).labels == ["0 to 2", "3 to 5", "6 to 8", "9"]
    assert cut(pay, 2).labels == ["[0, 2.5)", "[2.5, 4]"]
    assert cut(day, 3).labels == ["2024-01 to 2024-02", "2024-03 to 2024-04", "2024-05"]
    assert (cut(ages).note, cut(ages, 4).note, cut(day, 3).note) == ("", "in steps of 3 values", "in steps of 2 months")


def test_names_are_joined_by_the_finest_groups_that_fit() -> None:
    job = vc.Nominal("job", hierarchy={"Care": {"Sick": ["Nurse", "Aide"], "Old": ["Helper"]}, "Law": ["Judge"]})
    assert [(group.name, group.depth, group.first, group.last) for group in cut(job).groups()] == [
        ("Care", 0, 0, 2), ("Sick", 1, 0, 1), ("Old", 1, 2, 2), ("Law", 0, 3, 3),
    ]  # fmt: skip
    assert cut(job, 3).labels == ["Sick", "Old", "Judge"]
    assert [group.name for group in cut(job, 3).groups()] == ["Care", "Sick", "Old", "Law"]
    assert cut(job, 2).labels == ["Care", "Law"]


def test_more_names_than_a_page_can_list_are_refused_in_one_sentence() -> None:
    with pytest.raises(vc.errors.QueryError, match="give it a hierarchy"):
        cut(vc.Nominal("place", MANY))


def test_names_that_sql_would_misread_are_quoted() -> None:
    schema = vc.Schema([vc.Ordinal("age", 1, 3), vc.Ordinal("not", 1, 3), vc.Ordinal('a "b"', 1, 3)])
    names = [cut(attribute).to_dict(schema)["sql"]["name"] for attribute in schema]  # type: ignore[index]
    assert names == ["age", '"not"', '"a ""b"""']
