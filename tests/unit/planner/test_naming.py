"""Strategies by name, with options: the same words in Python, TOML and plan files."""

from pathlib import Path
from typing import Any

import pytest

import veilcube as vc
from veilcube.errors import PlanError
from veilcube.planner import OPTIONS, named_strategy, read_strategy_file


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({"name": "identity"}, vc.Identity()),
        ({"name": "tree", "branching": 8}, vc.Tree(branching=8, refine=False)),
        (
            {"name": "tree", "branching": {"age": [8]}, "weights": ["1/2", "1/2"]},
            vc.Tree({"age": [8]}, ["1/2", "1/2"], refine=False),
        ),
        ({"name": "tree", "refine": True}, vc.Tree()),
        ({"name": "staged tree"}, vc.Tree()),
        ({"name": "refined tree"}, vc.Tree()),
        ({"name": "wavelet", "flat": ["sex"], "threshold": "separate"}, vc.Wavelet(["sex"], "separate")),
        (
            {"name": "adaptive", "partition": "grow", "split": "30/31", "threshold": 3, "smooth": 2},
            vc.Adaptive("grow", 30 / 31, 2, 3),
        ),
        ({"name": "kd tree", "side": 4}, vc.KdTree(side=4)),
        ({"name": "marginals", "k": 3}, vc.Marginals(k=3)),
        ({"name": "marginals", "tables": [["age", "sex"], ["job"]]}, vc.Marginals(tables=(("age", "sex"), ("job",)))),
        ({"name": "grouped tables", "full_cells": True}, vc.GroupedTables(full_cells=True)),
    ],
    ids=str,
)
def test_a_name_with_options_makes_the_strategy(options: dict[str, Any], made: Any) -> None:
    assert named_strategy(options) == made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "wavlet"}, "did you mean 'wavelet'"),
        ({"name": "wavelet", "flatt": []}, "did you mean 'flat'"),
        ({"name": "tree", "flat": ["age"]}, "'flat' is an option of wavelet"),
        ({"name": "auto", "k": 2}, "'k' is an option of marginals"),
        ({"name": "identity", "x": 2}, "it takes none"),
        ({"flat": ["sex"]}, "names itself"),
        ({"name": 3}, "names itself"),
        ({"name": "wavelet", "threshold": "soft"}, "threshold must be"),
        ({"name": "adaptive", "split": "1/0"}, "split must be"),
        ({"name": "matched", "axes": [{"kind": "flat"}]}, "axes of a matched strategy"),
        ({"name": "matched", "axes": 7}, "axes of a matched strategy"),
    ],
    ids=str,
)
def test_what_no_strategy_knows_is_refused_with_what_was_probably_meant(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        named_strategy(options)


def test_a_file_names_a_strategy(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[strategy]\nname = "tree"\nbranching = {age = [8, 16], sex = "flat"}\n')
    assert read_strategy_file(path) == vc.Tree({"age": [8, 16], "sex": "flat"}, refine=False)
    for content in ("", "name = 'tree'", "[strategy]\nname = 'tree'\n[other]\n", "strategy = 3", "[["):
        path.write_text(content)
        with pytest.raises(PlanError):
            read_strategy_file(path)
    with pytest.raises(PlanError, match="cannot read the strategy file"):
        read_strategy_file(tmp_path / "none.toml")


def test_options_are_known_by_name() -> None:
    assert set(OPTIONS) > {"flat", "threshold", "tables", "k", "partition", "split", "branching", "weights"}
