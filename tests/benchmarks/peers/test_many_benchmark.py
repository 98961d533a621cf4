"""The benchmark of tables of many attributes: what it reads, what it measures, and what it compares."""

import json
from collections import Counter
from itertools import combinations, product
from math import exp, fsum, log, sqrt

import numpy as np
import pandas as pd
import pytest
from benchmarks.peers.dpbench.arrays import InputError
from benchmarks.peers.many.__main__ import main
from benchmarks.peers.many.asking import ask_table, total_variation
from benchmarks.peers.many.coded import CodedTable, spaced
from benchmarks.peers.many.comparison import against_others
from benchmarks.peers.many.folder import names_of_tables, read_questions, read_table
from benchmarks.peers.many.generated import RECIPES, make_questions, make_table
from benchmarks.peers.many.measure import KindFigures, Result
from benchmarks.peers.many.published import Peer, Peers

import veilcube as vc
from veilcube.errors import QueryError

COLUMNS, SIZES, KINDS = ("age", "work", "hours", "sex"), (9, 3, 5, 2), ("num", "cat", "num", "cat")
PEERS = """dataset,attributes,cells,rows,algo,privacy,epsilon,delta,seed,workload,metric,value,seconds
T,4,270,400,MST,approx,1.0,1e-09,0,2way,tv,0.5,1
T,4,270,400,AIM,approx,1.0,1e-09,0,2way,tv,0.25,1
T,4,270,400,AIM,approx,1.0,1e-09,1,2way,tv,0.2,1
T,4,270,400,AIM,approx,1.0,1e-09,0,2way,l1cells,0.01,1
T,4,270,400,MST,approx,0.1,1e-09,0,2way,tv,0.02,1
T,4,270,400,MST,approx,1.0,1e-06,0,2way,tv,0.03,1
U,4,270,400,MST,approx,1.0,1e-09,0,2way,tv,0.04,1
T,4,270,400,MST,approx,1.0,1e-09,0,range3,rmse,8,1
"""


def _rows():
    random = np.random.default_rng(3)
    first = random.integers(0, SIZES[0], 400)
    others = [(first + random.integers(0, 2, 400)) % size for size in SIZES[1:]]
    return np.stack([first, *others], axis=1)


def _conjunctions(width, number=12):
    random = np.random.default_rng(width)
    low, high = np.zeros((number, 4), dtype=int), np.tile(np.array(SIZES) - 1, (number, 1))
    attrs = [sorted(random.choice(4, width, replace=False).tolist()) for _ in range(number)]
    for row, axes in enumerate(attrs):
        for axis in axes:
            ends = np.sort(random.integers(0, SIZES[axis], 2))
            low[row, axis], high[row, axis] = ends if KINDS[axis] == "num" else ends[[0, 0]]
    return {"attrs": attrs, "low": low.tolist(), "high": high.tolist()}


def _meets(row, low, high):
    return all(a <= value <= b for value, a, b in zip(row, low, high, strict=True))


@pytest.fixture
def folder(tmp_path):
    rows = _rows()
    asked = {str(width): _conjunctions(width) for width in (1, 2, 3, 4)}
    truth = {
        f"r{width}": np.array(
            [
                sum(_meets(row, low, high) for row in rows.tolist())
                for low, high in zip(those["low"], those["high"], strict=True)
            ]
        )
        for width, those in asked.items()
    }
    triples = [list(axes) for axes in combinations(range(4), 3)]
    workload = {"pairs": [[0, 1], [2, 0], [1, 3]], "triples": triples, "range": asked}
    facts = {"columns": COLUMNS, "sizes": SIZES, "kinds": KINDS, "labels": {}}
    (tmp_path / "T.json").write_text(json.dumps(facts))
    (tmp_path / "T.workload.json").write_text(json.dumps(workload))
    pd.DataFrame(rows, columns=list(COLUMNS)).to_parquet(tmp_path / "T.parquet")
    np.savez(tmp_path / "T.truth.npz", **truth)
    (tmp_path / "peers.csv").write_text(PEERS)
    return tmp_path


@pytest.fixture
def made(monkeypatch):
    """Keep every release that the benchmark makes, so that it can be asked again."""
    releases, release = [], vc.release

    def keep(*arguments, **options):
        releases.append((release(*arguments, **options), options))
        return releases[-1][0]

    monkeypatch.setattr(vc, "release", keep)
    return releases


def _tables_by_hand(release, every_axes):
    """Distances of tables, and the answers with true counts, one cell after the other."""
    distances, pairs = [], []
    for axes in every_axes:
        names = [COLUMNS[axis] for axis in axes]
        counted = Counter(tuple(row[axis] for axis in axes) for row in _rows().tolist())
        answers = release.marginal(*names)
        cells = list(product(*(range(SIZES[axis]) for axis in axes)))
        total = fsum(max(answers.value[cell], 0) for cell in cells)
        shares = [max(answers.value[cell], 0) / total for cell in cells]
        true_shares = [counted[cell] / 400 for cell in cells]
        distances.append(fsum(abs(a - b) for a, b in zip(shares, true_shares, strict=True)) / 2)
        pairs += [(answers[cell], counted[cell]) for cell in cells]
    return sum(distances) / len(distances), pairs


def _conjunctions_by_hand(release, width):
    asked, pairs = _conjunctions(width), []
    for axes, low, high in zip(asked["attrs"], asked["low"], asked["high"], strict=True):
        conditions = {
            COLUMNS[axis]: (low[axis], high[axis]) if KINDS[axis] == "num" else str(low[axis]) for axis in axes
        }
        pairs.append((release.count(conditions), sum(_meets(row, low, high) for row in _rows().tolist())))
    return sqrt(sum((answer.value - truth) ** 2 for answer, truth in pairs) / len(pairs)), pairs


def _by_hand(release, kind):
    if kind == "2way":
        return _tables_by_hand(release, [(0, 1), (2, 0), (1, 3)])
    if kind == "3way":
        return _tables_by_hand(release, list(combinations(range(4), 3)))
    return _conjunctions_by_hand(release, int(kind[-1]))


def _run(folder, *options):
    file = folder / "out.json"
    assert main(["--data", str(folder), "--strategy", "marginals", "--json", str(file), *options]) == 0
    return json.loads(file.read_text())["results"]


def test_every_figure_is_what_a_slow_calculation_from_the_same_releases_gives(folder, made, capsys):
    (found,) = _run(folder, "--runs", "2")
    result, releases = found["result"], [release for release, _ in made]
    assert len(releases) == 2
    assert {(options["epsilon"], options["delta"], options["strategy"]) for _, options in made} == {
        (1.0, 1e-9, "marginals")
    }
    assert list(result["kinds"]) == ["2way", "3way", "range1", "range2", "range3", "range4"]
    for kind, figures in result["kinds"].items():
        both = [_by_hand(release, kind) for release in releases]
        assert figures["errors"] == pytest.approx([error for error, _ in both])
        assert figures["error"] == pytest.approx(exp(sum(log(error) for error, _ in both) / 2))
        pairs = [pair for _, those in both for pair in those]
        held = sum(answer.low <= truth <= answer.high for answer, truth in pairs)
        assert figures["coverage"] == pytest.approx(held / len(pairs))
        width = sum(answer.high - answer.low for answer, _ in pairs) / 2 / len(pairs)
        square = sum((answer.value - truth) ** 2 for answer, truth in pairs) / len(pairs)
        assert figures["width_to_rmse"] == pytest.approx(width / sqrt(square))
    assert found["peers"] == {
        "2way": {"algorithm": "AIM", "error": 0.2},
        "range3": {"algorithm": "MST", "error": 8.0},
    }
    ratios = [result["kinds"]["2way"]["error"] / 0.2, result["kinds"]["range3"]["error"] / 8]
    assert list(found["ratios"].values()) == pytest.approx(ratios)
    assert found["ratio"] == pytest.approx(sqrt(ratios[0] * ratios[1]))
    shown = capsys.readouterr().out
    for words in ("0.2 AIM", "8.00 MST", f"{found['ratio']:.3f}", "release", "fit", "answers"):
        assert words in shown


def test_a_pure_run_is_compared_with_the_same_peers_and_says_so(folder, made, capsys):
    (found,) = _run(folder, "--runs", "1", "--pure", "--most-tables", "2")
    assert [options["delta"] for _, options in made] == [None]
    assert found["peers"]["2way"] == {"algorithm": "AIM", "error": 0.2}
    assert [found["result"]["kinds"][kind]["questions"] for kind in ("2way", "3way", "range1")] == [2, 2, 12]
    shown = capsys.readouterr().out
    assert "the promise is pure, that of the peers has delta 1e-09" in shown
    assert "at most 2 tables" in shown


def test_peers_are_the_smallest_at_the_same_promise_only(folder):
    peers = Peers.read(folder / "peers.csv")
    assert peers.best("T", "2way", 1.0, 1e-9) == Peer("AIM", 0.2)
    assert peers.best("T", "2way", 1.0, 1e-6) == Peer("MST", 0.03)
    assert peers.best("T", "2way", 0.1, None) == Peer("MST", 0.02)
    assert peers.best("T", "3way", 1.0, 1e-9) is None
    assert Peers.read(folder / "none.csv").best("T", "2way", 1.0, 1e-9) is None


def test_a_refusal_is_printed_and_written(folder, capsys):
    (found,) = _run(folder, "--runs", "1", "--epsilon=-1")
    assert found["result"]["refused"]
    assert found["ratio"] is None
    assert "refused: " in capsys.readouterr().out


def _small_table():
    return CodedTable("T", COLUMNS, SIZES, tuple(kind == "num" for kind in KINDS), _rows())


@pytest.mark.parametrize("axes", [(2, 0), (1, 3), (1, 2)])
def test_a_table_that_is_refused_whole_is_the_same_in_slices(axes):
    table = _small_table()
    release = vc.release(table.frame(), schema=table.schema(), epsilon=1, strategy="marginals")

    class Reluctant:
        def marginal(self, *names, where=None):
            if where is None:
                raise QueryError("too many at once; ask for fewer")
            return release.marginal(*names, where=where)

    whole, sliced = ask_table(release, table, axes), ask_table(Reluctant(), table, axes)
    assert (whole.is_sliced, sliced.is_sliced) == (False, True)
    for name in ("value", "low", "high"):
        assert getattr(sliced, name) == pytest.approx(getattr(whole, name))


def test_total_variation_cuts_at_zero_and_compares_shares():
    truth = np.array([[3, 1], [0, 0]])
    assert total_variation(np.array([[6.0, 2.0], [-5.0, 0.0]]), truth) == 0
    assert total_variation(np.array([[1.0, 1.0], [2.0, -1.0]]), truth) == pytest.approx(0.5)
    assert total_variation(np.full((2, 2), -1.0), truth) == pytest.approx(0.5)


def test_a_sample_is_spread_over_all():
    assert spaced([(0,), (1,), (2,)], 3) == [(0,), (1,), (2,)]
    assert spaced([(place,) for place in range(9)], 3) == [(0,), (4,), (8,)]


def test_codes_outside_their_domain_and_questions_without_truth_are_refused(folder):
    table = read_table(folder, "T")
    assert len(read_questions(folder, table).conjunctions["range4"].truth) == 12
    np.savez(folder / "T.truth.npz", r1=np.zeros(12, dtype=int))
    with pytest.raises(InputError, match="questions about T"):
        read_questions(folder, table)
    (folder / "T.json").write_text(json.dumps({"columns": COLUMNS, "sizes": (8, 3, 5, 2), "kinds": KINDS}))
    with pytest.raises(InputError, match="codes from 0"):
        read_table(folder, "T")


def test_tables_are_those_that_have_both_files(folder):
    (folder / "alone.parquet").touch()
    assert names_of_tables(folder, []) == ["T"]


@pytest.mark.parametrize("name", RECIPES)
def test_generated_tables_are_the_same_every_time_and_counted_exactly(name):
    table = make_table(name, rows=300)
    assert np.array_equal(table.codes, make_table(name, rows=300).codes)
    assert len(table.sizes) == len(table.is_ordered)
    assert 3 <= len(table.sizes) <= 10
    assert (table.codes >= 0).all()
    assert (table.codes < np.array(table.sizes)).all()
    questions = make_questions(table, 8)
    for kind, asked in questions.conjunctions.items():
        widths = (asked.low > 0) | (asked.high < np.array(table.sizes) - 1)
        assert widths.sum(axis=1).max() <= int(kind[-1])
        for low, high, truth in zip(asked.low, asked.high, asked.truth, strict=True):
            assert truth == sum(_meets(row, low, high) for row in table.codes.tolist())
    for axes in list(questions.tables["3way"])[:2]:
        counted = Counter(tuple(row[axis] for axis in axes) for row in table.codes.tolist())
        assert {tuple(cell): table.count_by(axes)[tuple(cell)] for cell in counted} == counted
        assert table.count_by(axes).sum() == 300


def test_generated_tables_are_what_their_names_say():
    assert len(np.unique(make_table("sparse", 2000).codes, axis=0)) <= 40
    codes = make_table("deterministic", 2000).codes
    for known, follows in [((0,), 1), ((0, 2), 3), ((2, 4), 5)]:
        assert len(np.unique(codes[:, known], axis=0)) == len(np.unique(codes[:, [*known, follows]], axis=0))
    assert np.bincount(make_table("skewed", 2000).codes[:, 0]).max() > 300
    assert np.corrcoef(make_table("rich", 2000).codes.T).min() > 0.1
    assert np.abs(np.corrcoef(make_table("independent", 2000).codes.T) - np.eye(3)).max() < 0.1


def test_the_generated_form_compares_the_first_strategy_with_the_best_of_the_others(tmp_path, capsys):
    file = tmp_path / "out.json"
    options = ["--rows", "200", "--questions", "5", "--most-tables", "2", "--runs", "1", "--table", "rich"]
    strategies = ["--strategy", "marginals", "--strategy", "identity"]
    promises = ["--epsilon", "1", "--epsilon=-1"]
    assert main(["--generated", *options, *promises, *strategies, "--json", str(file)]) == 0
    written = json.loads(file.read_text())
    kept, refused = written["comparisons"]
    own, other = (result["kinds"] for result in written["results"][:2])
    assert list(own) == list(other) == ["2way", "3way", "range1", "range2", "range3", "range4"]
    logs = [log(own[kind]["error"] / other[kind]["error"]) for kind in own]
    assert (kept["strategy"], kept["best"]) == ("marginals", "identity")
    assert kept["ratio"] == pytest.approx(exp(sum(logs) / len(logs)))
    assert (refused["best"], refused["ratio"]) == (None, None)
    shown = capsys.readouterr().out
    assert "marginals / best of the others" in shown
    assert f"{kept['ratio']:.3f}" in shown
    assert "identity: refused: " in shown


def _result(strategy, *errors):
    kinds = {f"range{place}": KindFigures(error, (error,), 1.0, None, 1, 0) for place, error in enumerate(errors, 1)}
    return Result("T", 4, 270, 400, 1.0, None, strategy, 1, None if errors else "too large", kinds, {})


def test_the_best_of_the_others_is_the_one_with_the_smallest_errors_over_all_kinds():
    results = [_result("auto", 2.0, 2.0), _result("tree", 1.0, 8.0), _result("identity", 2.0, 2.5), _result("none")]
    found = against_others(results)
    assert found.best == "identity"
    assert found.ratio == pytest.approx(sqrt(2 / 2.5))
    assert found.ratio_by_kind == pytest.approx(sqrt(2 * 2 / 2.5))
    assert against_others([_result("auto"), _result("tree", 1.0)]).ratio is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "nowhere"], "no folder"),
        (["--generated", "--table", "unheard"], "unheard"),
        (["--generated", "--runs", "0"], "--runs"),
        (["--generated", "--rows", "0"], "--rows"),
    ],
)
def test_the_command_refuses_in_one_line(capsys, arguments, words):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
