"""The static site in a real browser, opened from disk: its answers are those of Python, to the printed digit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

import veilcube as vc
from support.browser import Watched, barriers, started_browser
from support.releases import gaussian_release_of, release_of
from veilcube.analyst import Release
from veilcube.schema import Box, Region
from veilcube.system import show_interval, show_number

NASTY = "<script>alert(1)</script> & 'pay'"
SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 20, 43, outside="other", missing="cell"),
        vc.Ordinal(NASTY, edges=[0, 10, 25.5, 100]),
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "It's": ["O'Hara", "<b>"]}, missing="cell"),
    ]
)
COUNTS = np.random.default_rng(5).poisson(9.0, SCHEMA.shape)
LONG = vc.Schema([vc.Ordinal("day", "2020-01-01", "2023-12-31"), vc.Nominal("ward", ["a", "b"])])
DAYS = np.random.default_rng(6).poisson(3.0, LONG.shape)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


def made(name: str) -> Release:
    if name == "gaussian":
        return gaussian_release_of(SCHEMA, COUNTS, rho=0.01, seed=3)
    if name in ("long wavelet", "long identity"):
        return release_of(LONG, DAYS, epsilon=0.5, seed=4, strategy=name.split()[1])
    return release_of(SCHEMA, COUNTS, epsilon=0.3, seed=2, strategy=name)


def questions(page, number: int, seed: int) -> list[list[list[int] | None]]:
    """Return random sets of runs for every attribute, many of them whole, most of them ranges."""
    generator = np.random.default_rng(seed)
    sizes = page.evaluate("Veilcube.page.answers.sizes")
    found = []
    for _ in range(number):
        masks: list[list[int] | None] = []
        for size in sizes:
            first, last = sorted(generator.integers(0, size, 2).tolist())
            kind = generator.integers(0, 4)
            chosen = [int(first <= i <= last) for i in range(size)]
            if kind == 1:
                chosen = generator.integers(0, 2, size).tolist()
                chosen[first] = 1
            masks.append(None if kind == 0 else chosen)
        found.append(masks)
    return found


def region_of(page, schema: vc.Schema, masks: list[list[int] | None]) -> Region:
    """Return the cells of chosen runs."""
    sizes = page.evaluate("Veilcube.model.attributes.map(one => one.sizes)")
    cells = [
        None if mask is None or all(mask) else np.repeat(np.array(mask, dtype=bool), size)
        for mask, size in zip(masks, sizes, strict=True)
    ]
    return Region(schema.shape, (Box(schema.shape, tuple(cells)),))


ANSWER = """masks => {
    const found = Veilcube.page.answers.ask(masks.map(mask => mask && Uint8Array.from(mask)));
    return found && [Veilcube.shown(found.value[0]), Veilcube.interval(found.low[0], found.high[0]),
                     found.stddev[0], Veilcube.inSql(Veilcube.model.attributes, masks)];
}"""


def compare(release: Release, site: Path, browser: Browser, number: int, **settings: Any) -> tuple[int, int]:
    """Ask the page and Python the same; return how many answers agreed and how many the page does not offer."""
    release.publish(site, f"Title {NASTY}", report=False, **settings)
    watched = Watched(browser)
    page, agreed, missing = watched.open(site / "index.html"), 0, 0
    for masks in questions(page, number, seed=1):
        found = page.evaluate(ANSWER, masks)
        if found is None:
            missing += 1
            continue
        expected = release.count(region_of(page, release.schema, masks), **settings)
        assert found[:2] == [show_number(expected.value), show_interval(expected.low, expected.high)], masks
        assert found[2] == pytest.approx(expected.stddev, rel=1e-9)
        if found[3] is not None:
            by_words = release.count(found[3], **settings)
            assert show_number(by_words.value) == found[0], found[3]
        agreed += 1
    assert watched.errors == []
    assert all(address.startswith(("file:", "data:")) for address in watched.asked)
    watched.page.close()
    return agreed, missing


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["identity", "tree", "wavelet", "matched", "gaussian", "grouped tables"])
def test_any_sets_of_values_are_answered_as_python_answers_them(
    strategy: str, tmp_path: Path, browser: Browser
) -> None:
    assert compare(made(strategy), tmp_path, browser, 150) == (150, 0)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["nonnegative", "thresholded"])
def test_cells_that_were_adjusted_have_the_intervals_of_least_squares(
    estimator: str, tmp_path: Path, browser: Browser
) -> None:
    release = made("wavelet")
    assert compare(release, tmp_path, browser, 60, estimator=estimator, confidence=0.9) == (60, 0)


@pytest.mark.slow
def test_a_long_attribute_of_a_wavelet_is_cut_into_runs_and_offers_its_ranges(tmp_path: Path, browser: Browser) -> None:
    agreed, missing = compare(made("long wavelet"), tmp_path / "w", browser, 80)
    assert (agreed > 40, missing > 0) == (True, True)
    assert compare(made("long identity"), tmp_path / "i", browser, 80) == (80, 0)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["staged tree", "marginals"])
def test_what_a_browser_cannot_compute_was_asked_in_advance(strategy: str, tmp_path: Path, browser: Browser) -> None:
    schema = vc.Schema(
        [vc.Ordinal("age", 20, 43), vc.Nominal("job", ["a", "b"], missing="cell"), vc.Ordinal("h", 1, 4)]
    )
    strategy_of = {"marginals": vc.Marginals(k=2)}.get(strategy, strategy)
    release = release_of(schema, np.full(schema.shape, 7), epsilon=1, seed=8, strategy=strategy_of)
    agreed, missing = compare(release, tmp_path, browser, 150)
    assert (agreed > 20, missing > 20) == (True, True)


@pytest.mark.slow
def test_impossible_cells_are_nobody_on_the_page_too(tmp_path: Path, browser: Browser) -> None:
    schema = vc.Schema(
        [vc.Ordinal("age", 0, 19), vc.Nominal("school", ["none", "some"]), vc.Ordinal("n", 1, 3)],
        impossible=[{"age": (0, 5), "school": "some"}],
    )
    counts = np.full(schema.shape, 20)
    counts[:6, 1] = 0
    release = release_of(schema, counts, epsilon=1, seed=8, strategy="grouped tables")
    assert compare(release, tmp_path, browser, 60) == (60, 0)


def test_people_choose_ranges_by_dragging_and_by_keyboard(tmp_path: Path, browser: Browser) -> None:
    release = made("identity")
    release.publish(tmp_path, f"Title {NASTY}", report=False)
    watched = Watched(browser, viewport={"width": 1200, "height": 900})
    page = watched.open(tmp_path / "index.html")
    assert page.inner_text("#title") == f"Title {NASTY}"
    whole = release.count()
    assert page.inner_text("#value") == show_number(whole.value)

    numbers = np.concatenate([10.0 ** np.random.default_rng(0).uniform(-7, 13, 400), np.arange(-3, 3, 0.125)]).tolist()
    assert page.evaluate("numbers => numbers.map(Veilcube.shown)", numbers) == [show_number(one) for one in numbers]
    chart = page.locator("svg.chart").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    step = box["width"] * (404 / 460) / 26
    left = box["x"] + box["width"] * 48 / 460
    page.mouse.move(left + 5.5 * step, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(left + 9.5 * step, box["y"] + 70, steps=4)
    page.mouse.up()
    found = release.count(age=(25, 29))
    assert page.inner_text("#words") == "age: 25 to 29"
    assert page.inner_text("#value") == show_number(found.value)
    assert page.inner_text("#interval") == f"95% interval: {show_interval(found.low, found.high)}"
    assert "age BETWEEN 25 AND 29" in page.text_content("#python")

    page.get_by_label("age to").select_option(label="31")
    page.get_by_text("Choose values").first.press("Enter")
    page.get_by_label("job O'Hara").press("Space")
    found = release.count("age BETWEEN 25 AND 31 AND job = 'O''Hara'")
    assert page.inner_text("#value") == show_number(found.value)
    link = page.evaluate("location.href")
    with page.expect_download() as download:
        page.get_by_text("Download CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "age,value,low,high,stddev"
    assert [line.split(",")[0] for line in lines[1:]] == [str(age) for age in range(25, 32)]

    again = watched.open(link)
    assert again.inner_text("#value") == show_number(found.value)
    page.get_by_text("Choose all rows").click()
    assert page.inner_text("#value") == show_number(whole.value)
    assert page.evaluate("document.querySelectorAll('script').length") == 5  # no text became a script
    assert watched.errors == []
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_barriers_and_fits_a_phone(scheme: str, tmp_path: Path, browser: Browser) -> None:
    made("identity").publish(tmp_path, "Barriers", report=False)
    watched = Watched(browser, color_scheme=scheme, viewport={"width": 390, "height": 800})
    page = watched.open(tmp_path / "index.html")
    for summary in page.locator("summary").all():
        summary.click()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_all_that_a_page_loads_but_the_numbers_is_small(tmp_path: Path) -> None:
    files = made("identity").publish(tmp_path, report=False)
    assets = [path for path in files if path.parent.name == "assets" or path.name == "index.html"]
    assert len(assets) == 6
    assert sum(path.stat().st_size for path in assets) < 1_500_000
