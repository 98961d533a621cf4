"""Refined releases in files: the same answers when they are opened, and refusals of files that somebody changed."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from support.veil_files import edit_document, entries_of
from veilcube.analyst.refine import Fact, RefinedRelease
from veilcube.errors import ReleaseFileError

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 11), vc.Nominal("sex", ["F", "M"])])
COUNTS = np.random.default_rng(0).poisson(60, SCHEMA.shape)
STRATEGIES = {
    "identity": vc.Identity(),
    "tree": vc.Tree(branching=2, refine=False),
    "wavelet": vc.Wavelet(),
    "marginals": vc.Marginals(k=2),
    "blocks": vc.Adaptive(partition="blocks", side=3),
}
GAPS = vc.Workload(SCHEMA, [{"age": [1, 4, 9]}, {"sex": "F"}, "age = 3 OR sex = 'M'"])
GIVEN: dict[str, dict[str, Any]] = {
    "sentences": {"constraints": [f"total = {COUNTS.sum()}", "count(age IN (1, 5) OR sex = 'F') <= 9000"]},
    "sources": {
        "constraints": [Fact("total = 1500", "exact private statistic"), Fact("count(age = 0) >= 3", "public")]
    },
    "marginal": {"B": ("sex", "age"), "c": COUNTS.T, "source": "public"},
    "blocks": {
        "B": vc.Workload.ranges(SCHEMA, [[0, 0], [3, 1]], [[4, 1], [9, 1]]),
        "c": [COUNTS[:5].sum(), COUNTS[3:10, 1].sum()],
    },
    "regions": {"B": GAPS, "c": [250, COUNTS[:, 0].sum(), 800], "source": "exact private statistic"},
    "mapping": {"constraints": {"total": COUNTS.sum(), "sex = 'F'": COUNTS[:, 0].sum()}},
    "negative": {"constraints": "count(age = 0) = -2", "counts": False},
}


def _refined(given: str, strategy: str = "tree", seed: int = 2) -> RefinedRelease:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vc.refine(release_of(SCHEMA, COUNTS, seed=seed, strategy=STRATEGIES[strategy]), **GIVEN[given])


def _same(refined: vc.Release, again: vc.Release) -> None:
    assert isinstance(again, RefinedRelease)
    assert isinstance(refined, RefinedRelease)
    for names in (["age"], ["age", "sex"]):
        before, after = refined.marginal(*names), again.marginal(*names)
        for part in ("value", "low", "high", "stddev"):
            np.testing.assert_array_equal(getattr(before, part), getattr(after, part))
    assert (again.facts, again.redundant, again.fact_test) == (refined.facts, refined.redundant, refined.fact_test)
    assert again.privacy.to_dict() == refined.privacy.to_dict()


@pytest.mark.filterwarnings("ignore:The facts do not fit")
@pytest.mark.parametrize("given", GIVEN)
def test_every_kind_of_fact_is_read_back(given: str, tmp_path: Path) -> None:
    refined = _refined(given)
    refined.save(tmp_path / "r.veil")
    again = vc.open(tmp_path / "r.veil")
    _same(refined, again)
    again.save(tmp_path / "s.veil")
    assert (tmp_path / "r.veil").read_bytes() == (tmp_path / "s.veil").read_bytes()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_is_refined_again_alike(strategy: str, tmp_path: Path) -> None:
    refined = _refined("sentences", strategy)
    refined.save(tmp_path / "r.veil", tables=False)
    _same(refined, vc.open(tmp_path / "r.veil"))


def test_staged_trees_are_refined_again_alike(tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 63)])
    release = release_of(schema, np.full(64, 50), seed=3, strategy=vc.Tree())
    assert release.record.is_staged
    refined = vc.refine(release, "total = 3200")
    refined.save(tmp_path / "r.veil")
    before, after = refined.marginal("age"), vc.open(tmp_path / "r.veil").marginal("age")
    np.testing.assert_array_equal([before.value, before.low, before.high], [after.value, after.low, after.high])


def test_a_release_refined_twice_keeps_all_its_facts(tmp_path: Path) -> None:
    refined = vc.refine(vc.refine(_refined("sentences"), B="sex", c=COUNTS.sum(axis=0)), "count(age <= 3) <= 3000")
    refined.save(tmp_path / "r.veil")
    again = vc.open(tmp_path / "r.veil")
    _same(refined, again)
    assert len(again.facts) + len(again.redundant) == 5
    more = vc.refine(again, "count(age = 11) >= 1")
    assert len(more.facts) == len(again.facts) + 1


def test_the_measurements_of_the_release_are_in_the_file_untouched(tmp_path: Path) -> None:
    release = release_of(SCHEMA, COUNTS, seed=3)
    vc.refine(release, "total = 1500").save(tmp_path / "r.veil")
    again = vc.open(tmp_path / "r.veil")
    np.testing.assert_array_equal(again.record.measurements[0].values, release.record.measurements[0].values)
    np.testing.assert_array_equal(again.unrefined.marginal("age").value, release.marginal("age").value)
    assert again.unrefined.privacy == release.privacy


def test_what_was_read_off_the_table_stays_visible(tmp_path: Path) -> None:
    refined = _refined("sources")
    refined.save(tmp_path / "r.veil")
    with pytest.warns(UserWarning, match="total = 1500"):
        words = str(vc.open(tmp_path / "r.veil").privacy)
    assert "'total = 1500', read off the private table without noise" in words
    manifest = json.loads(entries_of(tmp_path / "r.veil")["veil.json"])
    assert manifest["privacy"]["refinement"]["exact_facts"] == ["total = 1500"]
    assert manifest["format_version"] == 3


def test_a_file_whose_facts_do_not_fit_says_so_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="total = 9000"):
        vc.refine(release_of(SCHEMA, COUNTS, seed=3), "total = 9000").save(tmp_path / "r.veil")
    with pytest.warns(UserWarning, match="'total = 9000' is off by"):
        vc.open(tmp_path / "r.veil")


def test_a_release_without_facts_is_written_as_before(tmp_path: Path) -> None:
    release_of(SCHEMA, COUNTS, seed=3).save(tmp_path / "a.veil", tables=False)
    manifest = json.loads(entries_of(tmp_path / "a.veil")["veil.json"])
    assert manifest["format_version"] == 1
    assert "known_facts" not in manifest


def _first(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda manifest: change(manifest["known_facts"]["facts"][0])


FORGED: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "no facts": ("sentences", lambda m: m["known_facts"].update(facts=[])),
    "no list": ("sentences", lambda m: m["known_facts"].update(facts={"kind": "sentences"})),
    "no manner": ("sentences", lambda m: m["known_facts"].pop("counts")),
    "odd manner": ("sentences", lambda m: m["known_facts"].update(kept_rows="yes")),
    "other kind": ("sentences", _first(lambda e: e.update(kind="code"))),
    "no kind": ("sentences", _first(lambda e: e.pop("kind"))),
    "no sentence": ("sentences", _first(lambda e: e["facts"][0].pop("sentence"))),
    "a number": ("sentences", _first(lambda e: e["facts"][0].update(sentence=5))),
    "another column": ("sentences", _first(lambda e: e["facts"][0].update(sentence="count(job = 1) = 3"))),
    "gossip": ("sentences", _first(lambda e: e["facts"][0].update(source="gossip"))),
    "contradiction": ("sentences", _first(lambda e: e["facts"].append({"sentence": "total = 3", "source": "public"}))),
    "a megabyte": ("sentences", _first(lambda e: e["facts"][0].update(sentence="total = " + "1" * 2**20))),
    "no such attribute": ("marginal", _first(lambda e: e.update(attributes=["job"]))),
    "other attributes": ("marginal", _first(lambda e: e.update(attributes=["age"]))),
    "short counts": ("marginal", _first(lambda e: e["counts"].pop())),
    "text counts": ("marginal", _first(lambda e: e["counts"].__setitem__(0, "5"))),
    "huge counts": ("marginal", _first(lambda e: e["counts"].__setitem__(0, 10**400))),
    "true counts": ("marginal", _first(lambda e: e["counts"].__setitem__(0, True))),
    "too many": ("marginal", _first(lambda e: e.update(counts=[1] * 20_000))),
    "corners beyond": ("blocks", _first(lambda e: e["high"][0].__setitem__(0, 99))),
    "corners below": ("blocks", _first(lambda e: e["low"][0].__setitem__(0, -1))),
    "corners missing": ("blocks", _first(lambda e: e["low"].pop())),
    "corners of text": ("blocks", _first(lambda e: e["low"][0].__setitem__(0, "0"))),
    "fewer corners": ("blocks", _first(lambda e: e["low"][0].pop())),
    "region beyond": ("regions", _first(lambda e: e["regions"][0][0].update(age=[[0, 99]]))),
    "region of nothing": ("regions", _first(lambda e: e["regions"][0][0].update(job=[[0, 1]]))),
    "region of text": ("regions", _first(lambda e: e["regions"].__setitem__(0, "all"))),
    "regions missing": ("regions", _first(lambda e: e["regions"].pop())),
    "facts in format 1": ("sentences", lambda m: m.update(format_version=1)),
    "format 3 without facts": ("sentences", lambda m: m.pop("known_facts")),
    "facts of text": ("sentences", lambda m: m.update(known_facts="total = 5")),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    given, forge = FORGED[name]
    _refined(given).save(tmp_path / "r.veil", tables=False)
    edit_document(tmp_path / "r.veil", "veil.json", forge)
    with pytest.raises(ReleaseFileError) as caught:
        vc.open(tmp_path / "r.veil")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_a_stated_loss_in_the_file_is_not_believed(tmp_path: Path) -> None:
    _refined("sources").save(tmp_path / "r.veil", tables=False)
    edit_document(
        tmp_path / "r.veil", "veil.json", lambda m: m["privacy"]["refinement"].update(exact_facts=[], loss=0.1)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert vc.open(tmp_path / "r.veil").privacy.to_dict()["refinement"]["loss"] is None
