"""The folder of a site: what is in it, and that nothing a schema says becomes markup."""

import sys
from pathlib import Path

import pytest

import veilcube as vc
from support.releases import release_of

NASTY = "</script><img src=x onerror=alert(1)>"
SCHEMA = vc.Schema([vc.Ordinal("age", 1, 6), vc.Nominal(NASTY, [NASTY, "=1+1"])])
RELEASE = release_of(SCHEMA, [[5, 6]] * 6, seed=1)


def test_a_site_is_a_page_its_numbers_scripts_and_downloads(tmp_path: Path) -> None:
    files = RELEASE.publish(tmp_path / "a" / "site", NASTY, report=False)
    assert [path.relative_to(tmp_path / "a" / "site").as_posix() for path in files] == [
        "index.html",
        "data.js",
        "assets/answers.js",
        "assets/words.js",
        "assets/charts.js",
        "assets/explore.js",
        "assets/site.css",
        "release.veil",
        "card.md",
        "registry.yaml",
        "counts-01-age.csv",
        "counts-02-script-img-src-x-onerror-alert-1.csv",
        "all-cells.csv",
    ]
    assert all(path.is_file() for path in files)
    assert vc.open(files[7]).count().value == RELEASE.count().value


def test_nothing_that_a_schema_says_becomes_markup(tmp_path: Path) -> None:
    page = RELEASE.publish(tmp_path, NASTY, report=False)[0].read_text(encoding="utf-8")
    assert "onerror=alert" not in page.replace("onerror=alert(1)&gt;", "")
    assert "<script>" not in page
    assert page.count("<script src=") == 5


def test_a_site_without_charting_packages_has_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    files = RELEASE.publish(tmp_path, "Title")
    assert "report.html" not in {path.name for path in files}
    assert "report.html" not in files[0].read_text(encoding="utf-8")


def test_a_site_with_a_report_links_to_it(tmp_path: Path) -> None:
    files = RELEASE.publish(tmp_path, "Title")
    assert {"report.html", "report.png"} <= {path.name for path in files}
    assert 'href="report.html"' in files[0].read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(vc.VeilcubeError, match="choose another"):
        RELEASE.publish(tmp_path / "file" / "site", report=False)
