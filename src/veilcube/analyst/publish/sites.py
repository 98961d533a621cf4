"""Sites of whatever answers as a release does: a folder of files that any host, or no host at all, can show."""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Protocol

from veilcube.analyst.publish.explored import Explored, explored
from veilcube.analyst.report import HOW_TO_READ, REPORT_FILES, Reported, facts_of
from veilcube.errors import ReleaseFileError
from veilcube.system import MissingExtraError, atomic_file, read_flag, read_path, read_text

ASSETS = Path(__file__).with_name("assets")
SCRIPTS = ("answers.js", "words.js", "charts.js", "explore.js")
TITLE = "Differentially private counts"
RELEASE_FILE = "release.veil"
MOST_ROWS, MOST_ATTRIBUTES, LONGEST_TITLE = 200_000, 24, 120


class Published(Explored, Reported, Protocol):
    """A release, or what answers as one does."""

    def save(self, path: str | Path, *, tables: bool | None = None) -> None:
        """Write it to a file."""

    def export(self, path: str | Path, by: Sequence[str] | None = None, *, confidence: float = 0.95) -> Path:
        """Write a table of it to a file."""

    def report(self, folder: str | Path, title: str, *, confidence: float = 0.95) -> list[Path]:
        """Write a page with charts into a folder."""

    def write_card(self, folder: str | Path, title: str) -> list[Path]:
        """Write the release card into a folder."""


class Sites:
    """A static site that tells what a release holds and answers questions about it."""

    def publish(
        self: Published,
        folder: str | Path,
        title: str = TITLE,
        *,
        report: bool = True,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> list[Path]:
        """Write a site into a folder, and return the paths of its files, the first page first.

        It needs no server and opens from disk. Answers are computed in the browser, to the digit that Python prints.
        The report needs the extra ``report``; without that, or with ``report=False``, the site has none.
        """
        target = read_path(folder, "the folder of a site", ReleaseFileError)
        named, is_reported = read_text(title, "the title")[:LONGEST_TITLE], read_flag(report, "report")
        model = explored(self, named, estimator=estimator, confidence=confidence) | {"file": RELEASE_FILE}
        _make_folder(target / "assets")
        parts = _downloads(self, target, named, confidence)
        drawn = _report(self, target, named, confidence) if is_reported else []
        written = {"index.html": _index(self, named, [path.name for path in parts], is_reported=bool(drawn)).encode()}
        written["data.js"] = b"Veilcube.model = " + json.dumps(model).encode() + b";\n"
        for name in (*SCRIPTS, "site.css"):
            written[f"assets/{name}"] = (ASSETS / name).read_bytes()
        for name, content in written.items():
            with atomic_file(target / name) as stream:
                stream.write(content)
        return [*(target / name for name in written), *drawn, *parts]


def _downloads(release: Published, folder: Path, title: str, confidence: float) -> list[Path]:
    """Write the release itself, its card, and tables of single attributes and of what was measured."""
    release.save(folder / RELEASE_FILE)
    found = [folder / RELEASE_FILE, *release.write_card(folder, title)]
    for number, name in enumerate(release.schema.names[:MOST_ATTRIBUTES], start=1):
        if release.schema[name].size <= MOST_ROWS:
            plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "attribute"
            path = folder / f"counts-{number:02d}-{plain[:40]}.csv"
            found.append(release.export(path, [name], confidence=confidence))
    if release.schema.cells <= MOST_ROWS:
        found.append(release.export(folder / "all-cells.csv", release.schema.names, confidence=confidence))
    return found


def _report(release: Published, folder: Path, title: str, confidence: float) -> list[Path]:
    try:
        drawn = release.report(folder, title, confidence=confidence)
    except MissingExtraError:
        return []
    return [path for path in drawn if path.name in REPORT_FILES[:2]]


def _index(release: Published, title: str, downloads: Sequence[str], *, is_reported: bool) -> str:
    made = facts_of(release)
    fields: Mapping[str, str] = {
        "title": escape(title),
        "links": '<li><a href="report.html">Report</a></li>' if is_reported else "",
        "explore": explore_body(),
        "how_to_read": "\n".join(f"<li>{escape(line)}</li>" for line in HOW_TO_READ),
        "made": "\n".join(f"<tr><th scope='row'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in made.items()),
        "downloads": "\n".join(
            f'<li><a href="{escape(name)}" download>{escape(name)}</a>{_what(name)}</li>' for name in downloads
        ),
    }
    return Template((ASSETS / "index.html").read_text(encoding="utf-8")).substitute(fields)


def explore_body() -> str:
    """Return the part of a page that the scripts fill: the same on a site and on the service."""
    return (ASSETS / "explore.html").read_text(encoding="utf-8")


def _what(name: str) -> str:
    known = {RELEASE_FILE: "the release itself, for veilcube and any program that reads zip files"}
    known |= {"card.md": "the release card", "registry.yaml": "an entry for the public registry of deployments"}
    known |= {"all-cells.csv": "the estimate of every cell"}
    return f": {escape(known[name])}" if name in known else ""


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise ReleaseFileError(f"cannot make the folder {folder} ({reason}); choose another one") from problem
