"""The ISPE benchmark's tables, questions and regions: what is drawn, and that it is the same every time."""

import numpy as np
import pytest
from benchmarks.papers.ispe.coverage import pick_regions, region_of
from benchmarks.papers.ispe.data import (
    AGE_EDUCATION,
    AGE_HOURS,
    RANDOM,
    ROWS,
    SMOOTH,
    Table,
    made_tables,
    read_tables,
)
from benchmarks.papers.ispe.questions import CELLS, LARGE, SMALL, questions_for, questions_of_size
from benchmarks.peers.dpbench.arrays import InputError

import veilcube as vc

MADE = {table.name: table for table in made_tables()}


def test_the_tables_have_the_shapes_and_rows_of_what_they_resemble():
    assert {name: table.counts.shape for name, table in MADE.items()} == {
        SMOOTH: (64, 96),
        RANDOM: (64, 96),
        AGE_HOURS: (74, 99),
        AGE_EDUCATION: (74, 16),
    }
    assert MADE[AGE_HOURS].counts.sum() == MADE[AGE_EDUCATION].counts.sum() == ROWS
    assert all(table.counts.min() >= 0 and table.counts.dtype == np.int64 for table in MADE.values())


def test_the_tables_are_the_same_every_time():
    for table in made_tables():
        np.testing.assert_array_equal(table.counts, MADE[table.name].counts)


def test_neighbours_are_alike_in_the_smooth_table_and_not_in_the_random_one():
    def roughness(name):
        counts = MADE[name].counts.astype(float)
        return np.square(np.diff(counts, axis=0)).mean() / (2 * counts.var())

    assert roughness(SMOOTH) < 0.01
    assert roughness(RANDOM) == pytest.approx(1, abs=0.1)


def test_most_people_work_forty_hours_and_others_round_to_fives():
    by_hours = MADE[AGE_HOURS].counts.sum(axis=0)
    hours = np.arange(1, 100)
    assert 0.4 < by_hours[hours == 40].sum() / ROWS < 0.6
    assert by_hours[hours % 5 == 0].sum() > 0.7 * ROWS
    assert by_hours[hours == 45].sum() > 5 * by_hours[hours == 44].sum()


def test_two_degrees_hold_more_than_half_of_the_people():
    by_degree = np.sort(MADE[AGE_EDUCATION].counts.sum(axis=0))[::-1]
    assert by_degree[:2].sum() > ROWS / 2
    assert by_degree[-1] > 0


def test_questions_have_the_sides_of_their_kind_and_the_answers_of_the_table():
    table = MADE[SMOOTH]
    sides = {CELLS: (1 / 96, 1 / 64), SMALL: (0.01, 0.13), LARGE: (0.29, 0.91)}
    for questions in questions_for(table, 50):
        low, high = questions.workload.low, questions.workload.high
        shares = (high - low + 1) / np.array(table.counts.shape)
        least, largest = sides[questions.kind]
        assert least <= shares.min() <= shares.max() <= largest
        exact = [table.counts[a : c + 1, b : d + 1].sum() for (a, b), (c, d) in zip(low, high, strict=True)]
        np.testing.assert_array_equal(questions.truth, exact)


def test_ranges_of_one_size_have_that_share_of_every_axis():
    questions = questions_of_size(MADE[SMOOTH], 0.25, 10)
    lengths = questions.workload.high - questions.workload.low + 1
    assert np.unique(lengths, axis=0).tolist() == [[16, 24]]


def test_a_region_holds_the_cells_of_its_mask_and_a_rectangle_is_one_box():
    random = np.random.default_rng(1)
    mask = random.random((6, 7)) < 0.4
    np.testing.assert_array_equal(region_of(mask).mask(), mask)
    assert region_of(mask).cells == mask.sum()
    block = np.zeros((6, 7), dtype=bool)
    block[1:4, 2:5] = True
    assert region_of(block).rectangle() is not None


def test_regions_are_picked_from_those_of_the_release():
    table = Table("tiny", ("x", "y"), np.arange(48).reshape(6, 8))
    release = vc.release(table.cube, 1.0, vc.Adaptive(partition="blocks", side=2))
    labels = release.record.measurements[1].operator.chosen
    picked = pick_regions(release, 5, seed=1)
    assert len(picked) == 5
    for region in picked:
        (label,) = set(labels[region.mask()].tolist())
        assert region.cells == (labels == label).sum()


def test_tables_are_read_from_files_under_their_names(tmp_path):
    counts = np.arange(12).reshape(3, 4)
    np.save(tmp_path / "mine.npy", counts.astype(float))
    (table,) = read_tables([tmp_path / "mine.npy"])
    assert table.name == "mine"
    np.testing.assert_array_equal(table.counts, counts)


@pytest.mark.parametrize(
    "array", [np.ones(5), np.ones((2, 2, 2)), np.ones((1, 9)), -np.ones((3, 3)), np.full((3, 3), 0.5)]
)
def test_files_that_are_no_tables_of_counts_are_refused(tmp_path, array):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(InputError, match=r"bad\.npy"):
        read_tables([tmp_path / "bad.npy"])


def test_a_file_that_is_no_array_or_not_there_is_refused(tmp_path):
    (tmp_path / "text.npy").write_text("no array")
    for name in ("text.npy", "absent.npy"):
        with pytest.raises(InputError, match="cannot be read"):
            read_tables([tmp_path / name])
