"""``veilcube report``: a page about a release, with charts and intervals, a picture of it, and the release card."""

from pathlib import Path
from typing import Annotated

import typer

from veilcube.analyst import REPORT_FILES, Release
from veilcube.cli.shared import (
    Confidence,
    Force,
    JsonFlag,
    ReleaseFile,
    attributes_of_option,
    open_release_file,
    print_json,
    progress_bar,
    require_free,
    say,
)
from veilcube.errors import QueryError
from veilcube.schema import Schema


def report(
    file: ReleaseFile,
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY", help="Counts to answer on the page, as for 'veilcube query'.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where to write; unset, a folder called after the release."),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="The title; unset, the name of the release file.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="ATTRIBUTES", help="Draw these attributes, such as age,sex; may be repeated."),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", metavar="A,B", help="Draw these two attributes together; may be repeated."),
    ] = None,
    card: Annotated[
        bool, typer.Option("--card", help="Write the card and the registry entry only, which need no charts.")
    ] = False,
    confidence: Confidence = 0.95,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a page about a release: charts with intervals, tables, its card.

    The page works without a network. Beside it: a picture, the release card as Markdown, and an entry for the public
    registry of deployments as YAML.
    """
    folder = _read_folder(file, out)
    for name in REPORT_FILES[2:] if card else REPORT_FILES:
        require_free(folder / name, overwrite=force)
    release = open_release_file(file)
    named = file.stem if title is None else title
    if card:
        if queries or by or pair:
            raise QueryError("a card has no charts and no questions; leave out queries, --by and --pair")
        files = release.write_card(folder, named)
    else:
        names = None if by is None else attributes_of_option(release.schema, by)
        pairs = None if pair is None else [_read_pair(release.schema, text) for text in pair]
        with progress_bar("Drawing", hidden=as_json):
            files = release.report(folder, named, by=names, pairs=pairs, queries=queries or (), confidence=confidence)
    if as_json:
        print_json({"from": str(file), "files": [str(path) for path in files], "privacy": release.privacy.to_dict()})
        return
    _tell(release, files)


def _read_folder(file: Path, out: Path | None) -> Path:
    """Return where to write; a name of a page is taken for one, which the folder would not be."""
    if out is None:
        return Path(f"{file.stem}-report")
    if out.suffix.lower() in (".html", ".png", ".md", ".yaml"):
        raise QueryError(f"--out names a folder, which gets {', '.join(REPORT_FILES)}; leave '{out.suffix}' out")
    return out


def _read_pair(schema: Schema, text: str) -> list[str]:
    names = attributes_of_option(schema, [text])
    if len(names) != 2:
        raise QueryError(f"--pair takes two attributes with a comma between them, such as {','.join(schema.names[:2])}")
    return names


def _tell(release: Release, files: list[Path]) -> None:
    say("Wrote " + ", ".join(map(str, files)) + ".")
    say("In registry.yaml, replace what says FILL IN: what the release is for, and who publishes it.")
    say("", str(release.privacy))
    if release.counted is not None:
        say(release.counted)
