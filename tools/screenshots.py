"""Makes the screenshots of the docs from a site that is published on the spot: python -m tools.screenshots"""

import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page

import veilcube as vc
from tools.browser import opened_browser

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1120, "height": 1000}
JOBS = {"Care": ["Nurse", "Aide", "Midwife"], "Law": ["Judge", "Clerk"], "Trade": ["Carpenter", "Welder", "Cook"]}


def people() -> vc.Release:
    """Return a release of made-up people."""
    schema = vc.Schema([vc.Ordinal("age", 17, 90), vc.Ordinal("hours", 1, 80), vc.Nominal("job", hierarchy=JOBS)])
    generator = np.random.default_rng(2)
    age = np.exp(-(((np.arange(17, 91) - 41) / 16.0) ** 2))
    hours = 0.15 * np.exp(-(((np.arange(1, 81) - 22) / 9.0) ** 2)) + np.exp(-(((np.arange(1, 81) - 40) / 5.0) ** 2))
    job = generator.uniform(0.3, 1.0, 8)
    expected = 9.0 * age[:, None, None] * hours[None, :, None] * job[None, None, :]
    return vc.release(vc.Cube(schema, generator.poisson(expected)), epsilon=1.0, strategy="identity")


def drag(page: Page, selector: str, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag over an element, from and to places that are parts of its width and height."""
    box = page.locator(selector).first.bounding_box()
    if box is None:
        raise RuntimeError(f"there is no {selector} on the page")
    for place, act in ((start, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"], steps=3)
        act()


def main() -> None:
    """Write the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, opened_browser() as browser:
        people().publish(folder, "People at work, with epsilon = 1", report=False)
        page = browser.new_page(viewport=SIZE)
        page.goto((Path(folder) / "index.html").as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        drag(page, "svg.chart", (0.35, 0.5), (0.6, 0.5))
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=str(IMAGES / "explore.png"))


if __name__ == "__main__":
    main()
