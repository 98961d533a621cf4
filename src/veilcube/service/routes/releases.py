"""Releases: what they are, their files, and tables of them as files."""

from html import escape
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from veilcube.analyst import SCRIPTS, explore_body
from veilcube.service.public import export_table, release_facts
from veilcube.service.routes.manner import ByNames, Confidence, Estimator
from veilcube.service.web import PROBLEMS, AnyCaller, Name, TheService, data_route, page, show

router = APIRouter(tags=["releases"])
_EXAMPLE = {"name": "adult", "cells": 148, "privacy": {"epsilon": "1", "words": "Differentially private ..."}}
Ending = Literal["csv", "csv.gz", "parquet", "xlsx"]


@page(router, "/releases", "releases.html", example={"releases": ["adult"]})
def releases(caller: AnyCaller, service: TheService) -> dict[str, object]:
    """List the releases."""
    return {"releases": service.shelf.files.names()}


@router.get(
    "/releases/{name}.veil",
    response_class=FileResponse,
    responses=PROBLEMS,
    summary="Download a release as a file.",
)
def release_file(name: Name, caller: AnyCaller, service: TheService) -> Response:
    """Download the release as a file, which anyone may read and ask without this service."""
    path = service.shelf.files.existing(name)
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


@page(router, "/releases/{name}", "release.html", example=_EXAMPLE)
def release(name: Name, caller: AnyCaller, service: TheService) -> dict[str, object]:
    """Show what a release is: its schema, its promise, and the plan that it was made by."""
    return release_facts(name, service.shelf.release(name))


@router.get("/releases/{name}/explore", include_in_schema=False)
def explore_page(
    request: Request,
    name: Name,
    caller: AnyCaller,
    service: TheService,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> Response:
    """Show the page that explores a release: its scripts fetch the numbers and compute answers in the browser."""
    service.shelf.files.existing(name)
    model = f"/releases/{name}/explore.json?{urlencode({'estimator': estimator, 'confidence': confidence})}"
    body = explore_body().replace('<div id="explore">', f'<div id="explore" data-model="{escape(model)}">')
    return show(request, "explore.html", {"name": name, "body": body, "scripts": SCRIPTS})


@data_route(router, "/releases/{name}/explore.json", example={"format": 1, "title": "adult", "attributes": []})
def explore(
    name: Name, caller: AnyCaller, service: TheService, estimator: Estimator = "best", confidence: Confidence = 0.95
) -> Response:
    """Give the numbers from which answers are computed in a browser, as the page of a release does."""
    return Response(service.shelf.explored(name, estimator, confidence), media_type="application/json")


@page(router, "/releases/{name}/check", "data.html", example={"words": "..."})
def check(name: Name, caller: AnyCaller, service: TheService, estimator: Estimator = "best") -> dict[str, object]:
    """Tell how well the answers agree with what was measured."""
    return dict(service.shelf.release(name, estimator).check(estimator=estimator).to_dict())


@router.get(
    "/releases/{name}/table.{ending}",
    response_class=FileResponse,
    responses=PROBLEMS,
    summary="Download a table of a release.",
)
def table(
    name: Name,
    ending: Ending,
    caller: AnyCaller,
    service: TheService,
    by: ByNames = (),
    whole: Annotated[bool, Query(description="Add whole numbers that add up.")] = False,
    round_to: Annotated[int | None, Query(ge=1, le=10**9, alias="round")] = None,
    suppress: Annotated[int | None, Query(ge=1, le=10**9)] = None,
    estimator: Estimator = "best",
    confidence: Confidence = 0.95,
) -> Response:
    """Download a table of counts with intervals over the attributes `by`; without them all that was measured."""
    how: dict[str, object] = {"round": round_to, "suppress": suppress, "estimator": estimator, "confidence": confidence}
    folder = Path(mkdtemp(dir=service.settings.below("work"), prefix="table-"))
    forget = BackgroundTask(rmtree, folder, ignore_errors=True)
    try:
        path = folder / f"{name}.{ending}"
        export_table(service.shelf.release(name, estimator), path, list(by) or None, whole, how)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(path, filename=path.name, background=forget)
