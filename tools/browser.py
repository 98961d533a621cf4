"""A real browser: Debian's chromium, driven by Playwright's Python package. For tests, benchmarks and screenshots."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from playwright.sync_api import Browser, sync_playwright

QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", *QUIET]
INSTALL = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


class NoBrowserError(RuntimeError):
    """There is no browser, and none can be installed."""


@cache
def chromium() -> str:
    """Return the path of the system's browser, which is installed if it is missing and may be."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and shutil.which("apt-get"):
        for command in (["apt-get", "update", "-q"], INSTALL):
            subprocess.run(command, capture_output=True, check=False, timeout=600)
        found = shutil.which(NAMES[0])
    if found is None:
        raise NoBrowserError(f"there is no chromium, and '{' '.join(INSTALL)}' did not bring one: install it by hand")
    return found


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Start a browser, and end it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
