"""The service in a real browser: plan, release, explore; ask until the budget is out; the wrong role on a page."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

import veilcube as vc
from support.browser import Watched, barriers, started_browser
from support.datasets import add_visits, grant
from support.services import Served, serving
from veilcube.system import show_interval, show_number


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


@dataclass(frozen=True)
class Site:
    """A service that listens, and a browser for it."""

    served: Served
    url: str
    browser: Browser

    def sign_in(self, name: str, **settings: object) -> tuple[Watched, Page]:
        watched = Watched(self.browser, **settings)
        page = watched.page
        page.goto(f"{self.url}/login")
        page.get_by_label("Your key").fill(self.served.keys[name])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{self.url}/")
        return watched, page


@contextmanager
def listening(folder: Path, browser: Browser) -> Iterator[Site]:
    """Serve a folder at a port, in this process."""
    with serving(folder) as served:
        config = uvicorn.Config(served.client.app, port=0, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield Site(served, f"http://127.0.0.1:{port}", browser)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def site(tmp_path: Path, browser: Browser) -> Iterator[Site]:
    with listening(tmp_path, browser) as found:
        add_visits(found.served)
        yield found


def test_a_curator_plans_releases_and_explores(site: Site) -> None:
    watched, page = site.sign_in("cora")
    page.goto(f"{site.url}/datasets/visits")
    page.get_by_role("link", name="Plan a release").click()
    half = page.inner_text("#half_width")
    odds = page.locator("#odds span").nth(1).inner_text()
    page.get_by_label("question 1").fill("age BETWEEN 30 AND 39")
    page.locator("#slider").focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#half_width")).not_to_have_text(half)
    assert page.locator("#odds span").nth(1).inner_text() != odds
    assert page.locator("#questions tbody tr").count() == 1
    assert page.locator("#confirm").is_hidden()
    page.get_by_label("or: answers within").fill("30")
    expect(page.locator("#half_width")).to_have_text(re.compile(r"^(30|29\.\d+)$"))
    told = page.inner_text("#epsilon_told")
    page.get_by_role("button", name="Plan", exact=True).click()
    page.wait_for_selector("#confirm:not([hidden])")
    assert page.inner_text("#epsilon_told") == told
    page.get_by_label("Name of the release").fill("first")
    page.get_by_role("button", name="and release").click()
    page.get_by_role("link", name="Explore the release").click(timeout=120_000)
    page.wait_for_selector("html[data-ready]", state="attached")
    release = vc.open(site.served.service.shelf.files.path("first"))
    whole = release.count()
    assert page.inner_text("#value") == show_number(whole.value)
    page.get_by_label("age from").select_option(label="30")
    page.get_by_label("age to").select_option(label="39")
    found = release.count(age=(30, 39))
    assert page.inner_text("#value") == show_number(found.value)
    assert page.inner_text("#interval") == f"95% interval: {show_interval(found.low, found.high)}"
    assert 'vc.open("first.veil")' in page.text_content("#python")
    assert site.served.service.ledger.budget("visits").spent == Fraction(told)
    assert watched.errors == []
    assert all(address.startswith((site.url, "data:", "blob:")) for address in watched.asked)
    page.close()


def test_an_analyst_asks_until_her_share_is_out_and_meets_no_page_of_curators(site: Site) -> None:
    grant(site.served, "mara", "1/5")
    _, page = site.sign_in("mara")
    page.goto(f"{site.url}/tables/visits")
    assert "about 3 more counts within ±50" in page.inner_text("#forecast")
    for where, cost in (("age < 30", "It cost 1/10"), ("age <= 29", "It cost 0: it was answered before")):
        page.goto(f"{site.url}/tables/visits")
        page.get_by_label("where, as SQL").fill(where)
        page.get_by_label("for epsilon").fill("0.1")
        page.get_by_role("button", name="Ask, and pay").click()
        assert cost in page.inner_text("main")
    value = page.inner_text(".number strong")
    page.goto(f"{site.url}/questions")
    assert page.get_by_text(value, exact=False).count() >= 2
    page.goto(f"{site.url}/tables/visits")
    page.get_by_label("for epsilon").fill("0.15")
    page.get_by_role("button", name="Ask, and pay").click()
    refused = page.inner_text("[role=alert]")
    assert "was refused and nothing charged" in refused
    assert "0.1 (1/10) is left" in refused or "0.1 is left" in refused
    assert "/tables/visits/learned" in refused
    for path in ("/keys", "/log", "/jobs", "/datasets/visits/plan"):
        page.goto(f"{site.url}{path}")
        assert "this is for a curator" in page.inner_text("[role=alert]")
    page.goto(f"{site.url}/datasets")
    assert page.get_by_role("button", name="Register").count() == 0
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{site.url}/budgets")
    assert page.url.startswith(f"{site.url}/login")
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_barriers_and_fit_a_phone(site: Site, scheme: str) -> None:
    grant(site.served, "mara", "1/5")
    asked = site.served.post("mara", "/tables/visits/marginal.json", {"epsilon": "0.1", "by": ["sex"]})
    release = vc.release(vc.Cube(site.served.service.datasets.find("visits").schema, [[[9] * 3] * 2] * 40), epsilon=1)
    release.save(site.served.service.shelf.files.path("made"))
    _, page = site.sign_in("cora", color_scheme=scheme, viewport={"width": 390, "height": 800})
    paths = [
        "/",
        "/datasets",
        "/datasets/visits",
        "/datasets/visits/plan?strategy=identity",
        "/tables/visits",
        "/questions",
    ]
    paths += [f"/questions/{asked['id']}", "/budgets", "/budgets/visits", "/log", "/jobs", "/keys", "/releases"]
    for path in [
        *paths,
        "/releases/made",
        "/releases/made/explore",
        "/schemas",
        "/schemas/people/plan?strategy=identity",
    ]:
        page.goto(f"{site.url}{path}")
        if path.endswith("explore"):
            page.wait_for_selector("html[data-ready]", state="attached")
        assert barriers(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.close()
