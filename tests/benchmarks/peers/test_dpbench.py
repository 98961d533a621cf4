"""The DPBench harness: what it reads, what it measures and what it makes of that."""

import csv
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from benchmarks.peers.dpbench import adult
from benchmarks.peers.dpbench.__main__ import main
from benchmarks.peers.dpbench.arms import ARMS, DEFAULT, IDENTITY, LEAST_SQUARES, Arm
from benchmarks.peers.dpbench.arrays import CountArray, InputError, exact_answers, load_arrays, sum_blocks
from benchmarks.peers.dpbench.measure import Contest, Result, pooled_rmse
from benchmarks.peers.dpbench.published import peer_for
from benchmarks.peers.dpbench.summary import geometric_mean, judge, summarise
from benchmarks.peers.dpbench.tasks import Questions, Task, build_tasks

import veilcube as vc


@pytest.mark.parametrize("shape", [(9,), (5, 4), (3, 4, 2, 3)])
def test_exact_answers_are_the_sums_of_the_cells_of_each_block(shape):
    counts = np.random.default_rng(1).integers(0, 50, shape)
    blocks = [
        list(zip(*ends, strict=True))
        for ends in product(*([(a, b) for a in range(n) for b in range(a, n)] for n in shape))
    ]
    low, high = (np.array([block[end] for block in blocks]) for end in (0, 1))
    expected = [counts[tuple(slice(a, b + 1) for a, b in zip(*block, strict=True))].sum() for block in blocks]
    assert exact_answers(counts, low, high).tolist() == expected


def test_block_sums_add_the_cells_of_each_square():
    counts = np.arange(64).reshape(8, 8)
    assert sum_blocks(counts, 4).tolist() == [
        [counts[:4, :4].sum(), counts[:4, 4:].sum()],
        [counts[4:, :4].sum(), counts[4:, 4:].sum()],
    ]


def test_the_adult_like_table_is_the_same_every_time_and_sparse_and_uneven():
    counts = adult.adult_like_counts()
    assert counts.shape == (64, 32, 16, 8)
    assert counts.sum() == 32_561
    assert np.array_equal(counts, adult.adult_like_counts())
    assert (counts > 0).mean() < 0.1
    hours = counts.sum(axis=(0, 2, 3))
    assert hours[13] > 10 * hours[14]
    marital_by_age = counts.sum(axis=(1, 2))
    assert marital_by_age[:5, 2].sum() > 5 * marital_by_age[:5, 0].sum()
    assert marital_by_age[30:35, 0].sum() > 2 * marital_by_age[30:35, 2].sum()
    assert marital_by_age[:, 7].sum() == 0


def _save(folder, name, array):
    folder.mkdir(exist_ok=True)
    np.save(folder / name, array, allow_pickle=True)


def test_arrays_are_named_without_their_shape_and_whole_floats_are_counts(tmp_path):
    _save(tmp_path / "1D", "HEPTH.n4.npy", np.array([1, 0, 2, 3]))
    _save(tmp_path / "1D", "Stroke_2D_256_256.npy", np.array([0.0, 2.0, 0.0, 5.0]))
    found = load_arrays(tmp_path / "1D", (4,))
    assert [array.name for array in found] == ["HEPTH", "Stroke"]
    assert found[1].counts.dtype == np.int64
    assert found[1].counts.tolist() == [0, 2, 0, 5]


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.5, 1.0]),
        np.array([-1, 4]),
        np.array([np.nan, 1.0]),
        np.array([np.inf, 1.0]),
        np.array([1, 2, 3]),
        np.array(["a", "b"]),
        np.array([{}, {}], dtype=object),
    ],
    ids=["fraction", "negative", "nan", "infinite", "shape", "text", "pickled"],
)
def test_an_array_that_holds_no_counts_of_the_shape_is_refused_in_one_sentence(tmp_path, array):
    _save(tmp_path / "1D", "bad.npy", array)
    with pytest.raises(InputError, match=r"bad\.npy") as refusal:
        load_arrays(tmp_path / "1D", (2,))
    assert "\n" not in str(refusal.value)


def test_missing_and_empty_folders_and_names_that_collide_are_refused(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        load_arrays(tmp_path / "1D", (2,))
    (tmp_path / "1D").mkdir()
    with pytest.raises(InputError, match=r"no \.npy file"):
        load_arrays(tmp_path / "1D", (2,))
    _save(tmp_path / "1D", "x.n2.npy", np.array([1, 2]))
    _save(tmp_path / "1D", "x.npy", np.array([1, 2]))
    with pytest.raises(InputError, match="both named x"):
        load_arrays(tmp_path / "1D", (2,))


def test_only_the_4d_task_needs_no_folder():
    assert [task.name for task in build_tasks(None, None, ["4d"])] == ["4d"]
    with pytest.raises(InputError, match="--data"):
        build_tasks(None, None, [])


def test_peers_are_known_only_where_they_were_measured():
    peer = peer_for("1d", "ranges", "MEDCOST", 0.1)
    assert peer is not None
    assert (peer.rmse, peer.algorithm) == (81.4, "PrivTree")
    assert peer_for("1d", "ranges", "MEDCOST", 1.0) is None
    assert peer_for("256", "ranges", "cabspottingS", 0.1) is None
    assert peer_for("1d", "ranges", "another", 0.1) is None


def _small_task():
    schema = vc.Schema([vc.Ordinal("x", 0, 15)])
    asked = vc.Workload.random_ranges(schema, 40, seed=3)
    counts = np.random.default_rng(5).integers(100, 200, 16)
    return Task("small", "16 cells", schema, (CountArray("a", counts),), {"ranges": Questions(asked, asked)})


def test_measured_error_and_coverage_of_least_squares_are_those_expected():
    contest = Contest.prepare(_small_task(), 1.0, (DEFAULT, IDENTITY, LEAST_SQUARES))
    (results,) = contest.run(200)
    linear = [result for result in results if result.arm != DEFAULT.name]
    assert len(linear) == 2
    for result in linear:
        assert result.expected is not None
        assert result.rmse_stderr is not None
        assert result.coverage_stderr is not None
        assert abs(result.rmse - result.expected) < 6 * result.rmse_stderr
        assert abs(result.coverage - 0.95) < 6 * result.coverage_stderr + 0.01
        assert result.rmse_stderr < 0.06 * result.rmse
        assert result.to_matched == pytest.approx(result.rmse / result.matched)


def test_an_arm_that_cannot_run_is_named_with_its_reason_and_the_default_must_run():
    task = _small_task()
    odd = Arm("odd", "identity", "no such estimator")
    contest = Contest.prepare(task, 1.0, (DEFAULT, odd))
    assert contest.arms == (DEFAULT,)
    assert [(missing.arm, "no such estimator" in missing.reason) for missing in contest.missing] == [("odd", True)]
    with pytest.raises(vc.VeilcubeError):
        Contest.prepare(task, -1.0, (DEFAULT,))


def test_names_of_arms_differ():
    assert len({arm.name for arm in ARMS}) == len(ARMS)


def _result(array="HEPTH", task="1d", arm=DEFAULT.name, rmse=70.0, to_peer=0.5, coverage=0.96, expected=None):
    return Result(
        task=task,
        array=array,
        workload="ranges",
        epsilon=0.1,
        arm=arm,
        trials=10,
        queries=2000,
        rmse=rmse,
        rmse_stderr=rmse / 10,
        expected=expected,
        peer=None if to_peer is None else rmse / to_peer,
        peer_algorithm=None,
        to_peer=to_peer,
        matched=140.0,
        to_matched=rmse / 140.0,
        coverage=coverage,
        coverage_stderr=0.01,
        release_seconds=0.1,
        fit_seconds=0.1,
        answer_seconds=0.1,
    )


def test_the_error_over_trials_is_the_root_of_the_mean_square():
    assert pooled_rmse([0.0, 8.0]) == 2.0


def test_the_mean_of_ratios_is_geometric():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert geometric_mean([1.0, 8.0, 1.0]) == pytest.approx(2.0)


def test_summaries_leave_arrays_without_a_peer_out_of_the_ratio_to_peers_only():
    (summary,) = summarise([_result(to_peer=0.5), _result("bids", to_peer=0.72), _result("new", to_peer=None)])
    assert (summary.results, summary.peers) == (3, 2)
    assert summary.to_peer == pytest.approx(0.6)
    assert summary.worst_to_peer == 0.72
    # Two independent ratios, each with a relative error of 10%.
    assert summary.to_peer_stderr == pytest.approx(0.6 * 0.1 / np.sqrt(2))


def test_bars_are_reached_or_missed_by_the_default_arm_alone():
    good = [_result(to_peer=0.5), _result("bids", to_peer=1.1), _result(arm="identity", to_peer=9.0, coverage=0.5)]
    assert [verdict.is_reached for verdict in judge(good)] == [True] * 4
    bad = [_result(to_peer=0.5, coverage=0.92), _result("bids", to_peer=1.2, coverage=0.97)]
    found = {verdict.what: (verdict.is_reached, verdict.where) for verdict in judge(bad)}
    assert found == {
        "1d, epsilon 0.1: ratio to best peer, geometric mean": (False, ""),
        "1d, epsilon 0.1: ratio to best peer, worst": (False, "bids, ranges (1d)"),
        "epsilon 0.1: coverage of the 95% interval, average": (False, ""),
        "epsilon 0.1: coverage of the 95% interval, least": (False, "HEPTH, ranges (1d)"),
    }


def test_the_4d_cube_is_judged_by_the_better_of_identity_and_least_squares():
    cube = _result("synthetic", task="4d", to_peer=None)
    others = [
        replace(cube, arm=IDENTITY.name, expected=200.0),
        replace(cube, arm=LEAST_SQUARES.name, expected=100.0),
    ]
    for rmse, is_reached in [(104.0, True), (106.0, False)]:
        verdict = judge([replace(cube, rmse=rmse), *others])[-1]
        assert "better of identity and least squares" in verdict.what
        assert verdict.value == pytest.approx(rmse / 100)
        assert verdict.is_reached is is_reached


def test_the_command_writes_tables_and_plots(tmp_path, capsys):
    generator = np.random.default_rng(2)
    _save(tmp_path / "2D", "Stroke_2D_256_256.npy", generator.poisson(0.1, (256, 256)).astype(float))
    options = ["--only", "64", "--trials", "2", "--epsilon", "0.1"]
    assert main([*options, "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "257.0 HDMM" in shown
    assert "MISSED" in shown or "reached" in shown
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {"auto", "identity", "tree, least squares"} <= {row["arm"] for row in rows}
    for row in rows:
        assert (row["array"], row["trials"], row["queries"]) == ("Stroke", "2", "2000")
        assert float(row["to_peer"]) == pytest.approx(float(row["rmse"]) / 257)
    assert (tmp_path / "out" / "summary.csv").is_file()
    assert (tmp_path / "out" / "dpbench.svg").read_text().startswith("<svg")
    assert (tmp_path / "out" / "dpbench.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "1d"], "--data"),
        (["--data", "nowhere"], "no folder"),
        (["--only", "4d", "--trials", "0"], "--trials"),
        (["--only", "4d", "--adult", "nowhere.npy"], "nowhere.npy"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path, capsys, arguments, words):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()
