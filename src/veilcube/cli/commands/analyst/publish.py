"""``veilcube publish``: a site of a release that needs no server, with answers computed in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from veilcube.cli.shared import (
    Confidence,
    Force,
    JsonFlag,
    ReleaseFile,
    open_release_file,
    print_json,
    progress_bar,
    require_free,
    say,
    show_size,
)
from veilcube.errors import QueryError


def publish(
    file: ReleaseFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where to write; unset, a folder called after the release."),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="The title; unset, the name of the release file.")
    ] = None,
    without_report: Annotated[
        bool, typer.Option("--no-report", help="Leave out the page that 'veilcube report' writes.")
    ] = False,
    estimator: Annotated[
        str, typer.Option("--estimator", metavar="NAME", help="How to estimate, as for 'veilcube query'.")
    ] = "best",
    confidence: Confidence = 0.95,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a site about a release that answers questions in the browser, without a server.

    It opens from disk and from any static host: choose values, drag ranges, read counts with intervals. The release,
    its card and tables are beside it.
    """
    folder = Path(f"{file.stem}-site") if out is None else out
    if folder.resolve() in (Path.cwd().resolve(), file.parent.resolve()):
        raise QueryError("a site is many files; name a folder of its own with --out")
    require_free(folder / "index.html", overwrite=force)
    release = open_release_file(file)
    with progress_bar("Publishing", hidden=as_json):
        files = release.publish(
            folder,
            file.stem if title is None else title,
            report=not without_report,
            estimator=estimator,
            confidence=confidence,
        )
    if as_json:
        facts = {"from": str(file), "files": [{"file": str(path), "bytes": path.stat().st_size} for path in files]}
        print_json(facts | {"privacy": release.privacy.to_dict()})
        return
    say(f"Wrote {len(files)} files to {folder} ({show_size(sum(path.stat().st_size for path in files))}).")
    if not without_report and not (folder / "report.html").is_file():
        say("There is no report, which needs charts: pip install 'veilcube[report]' adds them.")
    say(f"Open {folder / 'index.html'} in a browser, or copy the folder to any web host.")
    say("", str(release.privacy))
    if release.counted is not None:
        say(release.counted)
