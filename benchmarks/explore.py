"""How soon the Explore page of a published release answers, opened from disk in a real browser: 1 s at 10^6 cells."""

import tempfile
from pathlib import Path

import numpy as np
from tools.browser import NoBrowserError, opened_browser

import veilcube as vc

REPEATS, BAR = 5, 1000
FOLLOW = (
    "() => { const t = performance.now(); Veilcube.page.chooseRange(0, 20, 59, false); return performance.now() - t }"
)


def main() -> None:
    schema = vc.Schema([vc.Ordinal(name, 0, 99) for name in ("a", "b", "c")])
    counts = np.random.default_rng(0).poisson(3.0, schema.shape)
    for strategy in ("identity", vc.Tree(branching=10, refine=False)):
        release = vc.release(vc.Cube(schema, counts), epsilon=1.0, strategy=strategy)
        with tempfile.TemporaryDirectory() as folder:
            files = release.publish(folder, report=False)
            try:
                ready, follows = _measured(files[0])
            except NoBrowserError as problem:
                print(problem)
                return
            size = (Path(folder) / "data.js").stat().st_size
            assets = sum(path.stat().st_size for path in files if path.suffix in (".js", ".css", ".html")) - size
        name = strategy if isinstance(strategy, str) else "tree"
        print(
            f"{name}, {schema.cells:,} cells: interactive after {np.median(ready):.0f} ms (bar {BAR}), all charts "
            f"follow a range in {np.median(follows):.0f} ms; numbers {size / 1e6:.1f} MB, all else "
            f"{assets / 1e3:.0f} kB (bar 1,500)"
        )


def _measured(page: Path) -> tuple[list[float], list[float]]:
    """Return milliseconds from opening the page until it has drawn all, and from a choice until all is drawn again."""
    ready, follows = [], []
    with opened_browser() as browser:
        for _ in range(REPEATS):
            tab = browser.new_page()
            tab.goto(page.resolve().as_uri())
            tab.wait_for_selector("html[data-ready]", state="attached")
            ready.append(float(tab.evaluate("Veilcube.ready")))
            follows.append(float(tab.evaluate(FOLLOW)))
            tab.close()
    return ready, follows


if __name__ == "__main__":
    main()
