"""What the Explore page knows: arrays packed for JSON, and how answers are computed or were asked."""

import base64
import json

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.publish import explored
from veilcube.analyst.publish.asked import MOST_QUESTIONS, choices_of, cut_for_asking

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 6), vc.Nominal("job", ["a", "b"], missing="cell")])
COUNTS = np.arange(18).reshape(6, 3)


def numbers_of(packed: dict) -> np.ndarray:
    kind = {"i4": "<i4", "f8": "<f8"}[packed["array"]]
    return np.frombuffer(base64.b64decode(packed["data"]), kind).reshape(packed["shape"])


def test_noisy_cells_are_packed_as_they_are() -> None:
    release = release_of(SCHEMA, COUNTS, seed=1)
    model = json.loads(json.dumps(explored(release, "Title")))
    assert (model["values"]["kind"], model["intervals"]["kind"]) == ("cells", "sums")
    assert (numbers_of(model["values"]["cells"]) == release.record.measurements[0].values).all()
    assert [one["labels"] for one in model["attributes"]] == [["1", "2", "3", "4", "5", "6"], ["a", "b", "(missing)"]]


def test_the_staircase_gives_the_half_width_of_every_number_of_cells() -> None:
    release = release_of(SCHEMA, COUNTS, seed=1)
    law = explored(release, "Title", confidence=0.9)["intervals"]
    starts, widths = numbers_of(law["starts"]), numbers_of(law["widths"])  # type: ignore[index]
    for cells in range(1, 7):
        answer = release.count(age=(1, cells), job="a", confidence=0.9)
        assert (answer.high - answer.low) / 2 == widths[np.searchsorted(starts, cells, side="right") - 1]


def test_what_is_asked_in_advance_stays_within_its_number_of_questions() -> None:
    for many in (1, 2, 3, 8, 20):
        schema = vc.Schema([vc.Ordinal(f"a{number}", 0, 400) for number in range(many)])
        choices = [len(choices_of(one)) for one in cut_for_asking(schema)]
        pairs = [(a, b) for b in range(many) for a in range(b)][:66]
        assert sum(choices) + sum(choices[a] * choices[b] for a, b in pairs) <= MOST_QUESTIONS
        assert min(choices) > 4


def test_answers_that_were_asked_are_those_of_the_release() -> None:
    release = release_of(SCHEMA, COUNTS, seed=1, strategy=vc.Marginals(k=1))
    model = explored(release, "Title")["values"]
    assert model["kind"] == "asked"  # type: ignore[index]
    tables = {tuple(table["axes"]): numbers_of(table["numbers"]) for table in model["tables"]}  # type: ignore[index]
    choices = [numbers_of(one).tolist() for one in model["choices"]]  # type: ignore[index]
    expected = release.count(age=(2, 4))
    found = tables[0,][:, choices[0].index([1, 3])]
    assert found.tolist() == pytest.approx([expected.value, expected.low, expected.high, expected.stddev], rel=1e-12)
    assert choices[1] == [[0, 2], [0, 0], [1, 1], [2, 2]]


def test_a_confidence_that_is_none_is_refused(tmp_path) -> None:
    with pytest.raises(vc.errors.QueryError, match="between 0 and 1"):
        release_of(SCHEMA, COUNTS).publish(tmp_path, confidence=95)
