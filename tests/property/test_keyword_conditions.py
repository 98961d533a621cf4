"""Conditions by keyword, of every type that somebody may pass: read, or refused in one sentence."""

import datetime as dt
import decimal
import fractions
import warnings

import numpy as np
import pandas as pd
import pytest

import veilcube as vc
from veilcube.errors import QueryError
from veilcube.query import read_query

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 17, 90, outside="other", missing="cell"),
        vc.Ordinal("income", edges=[0, 10_000, 20_000, 50_000]),
        vc.Ordinal("hours", edges=[1, 20, 40.5, 99]),
        vc.Ordinal("admitted", "2023", "2024", unit="month"),
        vc.Ordinal("day", "2024-01-01", "2024-01-09"),
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}, missing="cell"),
        vc.Nominal("code", ["1", "2", "true"]),
    ]
)


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("this object has no text")


def _inside_itself() -> list[object]:
    found: list[object] = [30]
    found.append(found)
    return found


def _deep() -> list[object]:
    found: list[object] = [30]
    for _ in range(5000):
        found = [found]
    return found


VALUES: dict[str, object] = {
    "numbers": [None, 0, 1, 30, -5, 2**70, 10**5000, -(10**5000), 1.5, float("nan"), float("inf"),
                -float("inf"), 1e308],
    "other numbers": [True, False, 1j, decimal.Decimal(30), decimal.Decimal("NaN"), decimal.Decimal("sNaN"),
                      decimal.Decimal("1e99999"), fractions.Fraction(61, 2)],
    "texts": ["", "30", "Nurse", "Care", "2024", "2024-03", "2024-02-30", "0000", "x" * 5000, "\ud800", "\0",
              "é", b"x"],
    "dates": [dt.date(2024, 3, 1), dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 1, tzinfo=dt.UTC), dt.time(1),
              dt.datetime(2024, 3, 1, 5), dt.timedelta(1), dt.date.min, dt.date.max, dt.datetime.max],
    "numpy": [np.int64(30), np.float32(30), np.float64("nan"), np.bool_(True), np.str_("Nurse"), np.array(30),
              np.datetime64("2024-03-01"), np.datetime64("NaT"), np.array([30, 31]), np.array([[30, 31]]), np.array([]),
              np.array(["Nurse"]), np.array([object()], dtype=object)],
    "pandas": [pd.Timestamp("2024-03-01"), pd.NaT, pd.NA, pd.Series([30]), pd.Series(["Nurse"])],
    "ranges": [(), (30,), (30, 40), (40, 30), (None, None), (None, 30), (30, 40, 50), ("2024-01", "2024-03"),
               ("a", "b"),
               (dt.date(2024, 1, 1), "2024-03"), ((20, 30), 40), (1j, 2), (float("nan"), 3), (10**5000, None),
               (None, -(10**5000)), (True, False), ([30], [40]), ("30", "40"), (-float("inf"), float("inf"))],
    "lists": [[], [30, None], [[30], 31], [(20, 30), (40, 50)], {30, 31}, frozenset(["Nurse"]), {"a": 1}, {},
              range(20, 30), _inside_itself(), _deep(), (_inside_itself(), 3)],
    "objects": [object(), Mute(), int, len, iter([1]), Ellipsis, NotImplemented, slice(1, 2), memoryview(b"x"), SCHEMA],
}  # fmt: skip


def _is_read(query: object) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read_query(SCHEMA, query)  # type: ignore[arg-type]
        except QueryError as refusal:
            message = str(refusal)
        else:
            return True
    assert message.strip()
    assert "\n" not in message
    assert len(message) < 500
    return False


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_condition_of_any_type_is_read_or_refused_in_one_sentence(name: str, kind: str) -> None:
    values = VALUES[kind]
    assert isinstance(values, list)
    for value in values:
        for condition in (
            value,
            [value],
            [[value], value],
            (value, None),
            (None, value),
            np.array([value, None], object),
        ):
            _is_read({name: condition})


@pytest.mark.parametrize("kind", VALUES)
def test_a_query_or_a_name_of_any_type_is_read_or_refused_in_one_sentence(kind: str) -> None:
    values = VALUES[kind]
    assert isinstance(values, list)
    for value in values:
        _is_read(value)
        try:
            by_name = {value: 30}
        except TypeError:
            continue  # no key of any mapping
        assert not _is_read(by_name)


def test_lists_inside_lists_mean_one_list() -> None:
    flat = read_query(SCHEMA, {"age": [30, 31, (40, 45)]})
    assert read_query(SCHEMA, {"age": [[30], {31}, [[(40, 45)]]]}).cells == flat.cells
    assert (
        read_query(SCHEMA, {"job": [("Nurse", "Judge"), "Aide"]}).cells
        == read_query(SCHEMA, {"job": ["Care", "Law"]}).cells
    )
    assert (
        read_query(SCHEMA, {"age": np.array([[30, 31], [32, 33]])}).cells == read_query(SCHEMA, {"age": (30, 33)}).cells
    )
