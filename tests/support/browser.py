"""A real browser for tests, and what finds barriers on a page."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tools.browser import NoBrowserError, chromium, opened_browser

AXE = "axe-core@4"


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start a browser, and end it; skips where there is none."""
    try:
        chromium()
    except NoBrowserError as problem:
        pytest.skip(str(problem))
    with opened_browser() as browser:
        yield browser


@cache
def axe_core() -> str:
    """Return the program that looks for what people cannot use; skips where npm cannot bring it."""
    folder = Path(__file__).parents[2] / ".data" / "axe"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", AXE]
        if shutil.which("npm") is None or subprocess.run(command, cwd=folder, check=False, timeout=300).returncode:
            pytest.skip(f"npm could not bring {AXE}, which looks for what people cannot use")
    return script.read_text(encoding="utf-8")


def barriers(page: Page) -> list[str]:
    """Return what axe-core finds on a page, a line each."""
    page.evaluate(axe_core())
    found = page.evaluate("async () => (await axe.run()).violations")
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]


class Watched:
    """A page whose errors are remembered: a test that looks at it fails if there were any."""

    def __init__(self, browser: Browser, **settings: object) -> None:
        self.page: Page = browser.new_page(**settings)  # type: ignore[arg-type]
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda problem: self.errors.append(str(problem)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, where: Path | str) -> Page:
        """Open a file or an address, and wait until the Explore page has drawn."""
        self.page.goto(where.resolve().as_uri() if isinstance(where, Path) else where)
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=120_000)
        return self.page
