"""Reports of releases of every kind: complete, escaped, quick, readable without a network."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.analyst import REPORT_FILES, Release
from veilcube.analyst.report import reports
from veilcube.analyst.report.gathering import telling_pairs
from veilcube.analyst.report.views import MOST_BARS, MOST_POINTS, is_line, view_of
from veilcube.errors import ReleaseFileError, VeilcubeError
from veilcube.system import MissingExtraError

SCRIPT = "</script><img src=x onerror=alert(1)>&$title"
RNG = np.random.default_rng(1)


def page_of(release: Release, folder: Path, **options: object) -> str:
    paths = release.report(folder, **options)  # type: ignore[arg-type]
    assert [path.name for path in paths] == list(REPORT_FILES)
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG")
    return (folder / "report.html").read_text(encoding="utf-8")


def content_of(page: str) -> dict:  # type: ignore[type-arg]
    return json.loads(page.split('id="charts">')[1].split("</script>", maxsplit=1)[0])  # type: ignore[no-any-return]


def kinds() -> vc.Schema:
    return vc.Schema(
        [
            vc.Ordinal("admitted", "2024-01-01", "2024-12-31", unit="day", missing="cell"),
            vc.Nominal("ward", hierarchy={f"G{g}": [f"{g}-{i}" for i in range(9)] for g in range(5)}, outside="other"),
            vc.Nominal("town", [f"town {i} {'of a very long name ' * 4}" for i in range(40)]),
            vc.Ordinal("cost", edges=[0, 1, 2.5, 10]),
            vc.Ordinal("one", 5, 5),
        ]
    )


@pytest.fixture(scope="module")
def every_kind() -> Release:
    schema = kinds()
    rows = pa.table(
        {
            "admitted": ["2024-05-01", "2024-12-31", None] * 200,
            "ward": ["1-3", "4-8", "elsewhere"] * 200,
            "town": [schema["town"].labels()[place % 40] for place in range(600)],
            "cost": [0.5, 2.0, 9.0] * 200,
            "one": [5] * 600,
        }
    )
    return vc.release(rows, schema=schema, epsilon=2, strategy=vc.Marginals(2))


def test_every_kind_of_attribute_has_a_chart_with_its_answers(every_kind: Release, tmp_path: Path) -> None:
    page = page_of(every_kind, tmp_path, queries=["cost < 1"], pairs=[("ward", "cost"), ("town", "admitted")])
    content = content_of(page)
    assert set(content["specs"]) == {f"one{k}" for k in range(5)} | {"two0", "two1"}
    data = content["datasets"]
    assert len(data["one0"]) == -(-366 // -(-366 // MOST_POINTS))
    assert [row["label"] for row in data["one1"]] == ["G0", "G1", "G2", "G3", "G4", "(other)"]
    assert len({row["label"] for row in data["one2"]}) == MOST_BARS
    assert [row["label"] for row in data["one3"]] == ["[0, 1)", "[1, 2.5)", "[2.5, 10]"]
    expected = every_kind.count(ward="G1")
    row = data["one1"][1]
    assert (row["value"], row["low"], row["high"]) == pytest.approx((expected.value, expected.low, expected.high))
    assert "(missing): " in page
    assert "cost &lt; 1" in page
    for charted in data.values():
        assert all(row["low"] <= row["value"] <= row["high"] for row in charted)


def test_a_page_needs_no_network(every_kind: Release, tmp_path: Path) -> None:
    page = page_of(every_kind, tmp_path, by=["cost"])
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)  # without the charting library
    assert not re.search(r"(src|href)=|https?://(?!vega\.github\.io/schema)", own)


def test_script_in_names_labels_and_titles_stays_text(tmp_path: Path) -> None:
    groups = {f"g{SCRIPT}": [f"a{SCRIPT}", "b"], "h": ["<!--<script>"]}
    schema = vc.Schema([vc.Ordinal("x", 1, 3), vc.Nominal(f"n{SCRIPT}", hierarchy=groups)])
    release = release_of(schema, np.full(schema.shape, 5), seed=1)
    page = page_of(release, tmp_path, title=f"t{SCRIPT}", queries=["x < 3"])
    own = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)  # without the charting library
    assert "<img" not in own
    assert "<!--" not in own
    assert page.count("</script>") == 3
    assert content_of(page)["datasets"]["one1"][0]["label"].startswith("a</script>")
    card = (tmp_path / "card.md").read_text(encoding="utf-8").split("## Registry entry")[0]
    assert "<img" not in re.sub(r"\\<", "", card)


@pytest.mark.parametrize("strategy", ["identity", "tree", "staged tree", "wavelet", "adaptive", "kd tree", "marginals"])
def test_every_strategy_has_a_report(strategy: str, tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 15), vc.Ordinal("b", 0, 15)])
    chosen = vc.Marginals(2) if strategy == "marginals" else strategy
    release = vc.release(vc.Cube(schema, RNG.poisson(9, schema.shape)), strategy=chosen)
    data = content_of(page_of(release, tmp_path))["datasets"]
    np.testing.assert_allclose([row["value"] for row in data["one0"]], release.marginal("a").value, atol=1e-6)
    assert len(data["two0"]) == 256


def test_of_many_attributes_the_first_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST_ATTRIBUTES", 4)
    names = [f"a{number}" for number in range(30)]
    table = RNG.integers(0, 4, (500, 30))
    table[:, 3] = table[:, 1]
    schema = vc.Schema([vc.Ordinal(name, 0, 3) for name in names])
    counted = pa.table(dict(zip(names, table.T, strict=True)))
    release = vc.release(counted, schema=schema, epsilon=50, strategy="marginals")
    assert telling_pairs(release, names[:5])[0] == ("a1", "a3")
    page = page_of(release, tmp_path, by=names[:6], pairs=[("A1", "a2")])
    assert set(content_of(page)["specs"]) == {"one0", "one1", "one2", "one3", "two0"}
    assert "2 more attributes are in the data dictionary only" in page


def test_a_refined_release_has_a_report(tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 3), vc.Nominal("b", ["x", "y"])])
    refined = vc.refine(release_of(schema, np.full((4, 2), 5), seed=2), ["total = 41"])
    assert ">41<" in page_of(refined, tmp_path)  # type: ignore[arg-type]


def test_a_report_of_persons_says_which_rows_count(tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 9)])
    rows = pa.table({"id": [1, 1, 2], "age": [1, 2, 3]})
    release = vc.release(rows, schema=schema, person="id", max_rows=2, strategy="identity")
    assert release.counted is not None
    assert release.counted.split(";")[0] in page_of(release, tmp_path)


def test_views_run_through_all_cells_in_order() -> None:
    for attribute in kinds():
        if attribute.name == "town":
            continue
        view = view_of(attribute, None, 30, as_line=is_line(attribute))
        covered = np.concatenate([np.arange(low, high + 1) for low, high in zip(view.low, view.high, strict=True)])
        stray = attribute.size - attribute.regular_size if is_line(attribute) else 0
        np.testing.assert_array_equal(covered, np.arange(attribute.size - stray))
        assert len(set(view.labels)) == len(view) <= 30


def test_without_the_charting_packages_it_says_which_extra_is_missing(
    every_kind: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'veilcube\[report\]'"):
        every_kind.report(tmp_path / "r")
    assert not (tmp_path / "r").exists()
    assert [path.name for path in every_kind.write_card(tmp_path / "r")] == ["card.md", "registry.yaml"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "cost"}, "list"),
        ({"by": ["height"]}, "no attribute 'height'"),
        ({"pairs": ["cost"]}, "a pair names two attributes"),
        ({"pairs": [("cost", "cost")]}, "named twice"),
        ({"queries": ["SELECT COUNT(*) FROM t GROUP BY cost"]}, "GROUP BY"),
        ({"queries": ["height = 3"]}, "height"),
        ({"title": ""}, "title"),
        ({"confidence": 2}, "confidence"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    every_kind: Release, tmp_path: Path, options: dict[str, object], words: str
) -> None:
    with pytest.raises(VeilcubeError, match=words):
        every_kind.report(tmp_path, **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_told(every_kind: Release, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReleaseFileError, match="choose another one"):
        every_kind.report(tmp_path / "file" / "r", by=["cost"])
