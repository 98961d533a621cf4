"""``veilcube export``: tables of a release for colleagues who have other programs."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from veilcube.analyst import Release, table_format
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
    show_confidence,
    show_size,
)
from veilcube.errors import QueryError

Target: TypeAlias = Path | None
_KINDS = {"csv": (".csv", ".csv.gz"), "parquet": (".parquet",), "xlsx": (".xlsx",)}


class Preset(StrEnum):
    """Common ways to show counts."""

    TENS = "tens"
    HUNDREDS = "hundreds"
    NO_SMALL = "no-small"
    PUBLICATION = "publication"


def export(
    file: ReleaseFile,
    csv: Annotated[Target, typer.Option("--csv", metavar="FILE", help="Write a .csv or .csv.gz file.")] = None,
    parquet: Annotated[Target, typer.Option("--parquet", metavar="FILE", help="Write a .parquet file.")] = None,
    xlsx: Annotated[Target, typer.Option("--xlsx", metavar="FILE", help="Write a workbook.")] = None,
    veil: Annotated[
        Target,
        typer.Option("--veil", metavar="FILE", help="Write the release with its tables inside, for R, pandas, xarray."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="ATTRIBUTES",
            help="One table over these attributes, or levels, such as sex,job:Level 1; may be repeated. Unset: every "
            "measured table.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Add a column of whole numbers of at least 0 that add up.")
    ] = False,
    rounding: Annotated[
        int | None, typer.Option("--round", metavar="N", help="Show multiples of N; for the eye, not for privacy.")
    ] = None,
    suppress: Annotated[
        int | None,
        typer.Option("--suppress", metavar="N", help="Leave counts below N empty; for the eye, not for privacy."),
    ] = None,
    preset: Annotated[
        Preset | None,
        typer.Option(
            "--preset",
            help="A common choice of --round and --suppress: multiples of 10 or 100; counts below 11 empty; or "
            "multiples of 5 and counts below 11 empty.",
        ),
    ] = None,
    estimator: Annotated[
        str, typer.Option("--estimator", metavar="NAME", help="How to estimate, as for 'veilcube query'.")
    ] = "best",
    confidence: Confidence = 0.95,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Write tables of a release as CSV, Parquet or a workbook.

    One row for each combination of values: the labels, the estimate, its interval and its standard deviation.
    """
    given = {"csv": csv, "parquet": parquet, "xlsx": xlsx}
    targets = [_checked(kind, path) for kind, path in given.items() if path is not None]
    if not targets and veil is None:
        raise QueryError("there is no file to write; name one with --csv, --parquet, --xlsx or --veil")
    for path in [*targets, *([] if veil is None else [veil])]:
        require_free(path, overwrite=force)
    release = open_release_file(file)
    names = None if by is None else attributes_of_option(release.schema, by)
    with progress_bar("Writing", hidden=as_json):
        for path in targets:
            release.export(
                path,
                names,
                whole,
                round=rounding,
                suppress=suppress,
                preset=preset,
                estimator=estimator,
                confidence=confidence,
            )
        if veil is not None:
            release.save(veil, tables=True)
            targets.append(veil)
    if as_json:
        files = [{"file": str(path), "bytes": path.stat().st_size} for path in targets]
        facts = {"from": str(file), "files": files, "by": names, "whole": whole, "round": rounding, "preset": preset}
        print_json(facts | {"suppress": suppress, "confidence": confidence, "privacy": release.privacy.to_dict()})
        return
    _tell(release, targets, confidence, is_shown=any(one is not None for one in (rounding, suppress, preset)))


def _checked(kind: str, path: Path) -> Path:
    """Refuse a name that promises another kind of file than the option."""
    if table_format(path) not in _KINDS[kind]:
        raise QueryError(f"--{kind} writes {' or '.join(_KINDS[kind])}, so '{path.name}' would mislead; rename it")
    return path


def _tell(release: Release, targets: Sequence[Path], confidence: float, *, is_shown: bool) -> None:
    for path in targets:
        say(f"Wrote {path} ({show_size(path.stat().st_size)}).")
    say(f"value is the estimate, low and high are the {show_confidence(confidence)} interval, stddev its error.")
    if is_shown:
        say("Rounding and empty cells are for the eye; privacy comes from the noise alone.")
    say("", str(release.privacy))
    if release.counted is not None:
        say(release.counted)
