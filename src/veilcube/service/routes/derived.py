"""What is made of a release for nothing: refined answers, synthetic rows, and a site that needs no server."""

from collections.abc import Callable
from pathlib import Path
from shutil import make_archive, rmtree
from tempfile import mkdtemp
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from veilcube.analyst import Fact, refine_release, refinement_privacy
from veilcube.service.base import ForbiddenError
from veilcube.service.public import QueryText, plain_answer
from veilcube.service.routes.manner import Confidence
from veilcube.service.web import PROBLEMS, AnyCaller, Name, Service, TheService, data_route

router = APIRouter(tags=["releases"])
MOST_FACTS, MOST_ROWS = 100, 1_000_000
_EXAMPLE = {"words": "The facts fit what was measured.", "results": [{"query": "sex = 'Female'", "after": {}}]}


class KnownFacts(BaseModel, extra="forbid"):
    """Facts that are known about the table, as sentences over `total` and `count(condition)`, and what to ask then."""

    facts: Annotated[
        list[Annotated[str, Field(max_length=2000)]],
        Field(min_length=1, max_length=MOST_FACTS, examples=[["total = 1200"]]),
    ]
    source: Annotated[
        Literal["unstated", "public", "exact private statistic"], Field(description="Where the facts are known from.")
    ] = "unstated"
    queries: Annotated[list[QueryText], Field(max_length=1000)] = []
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    kept_rows: bool = False
    save_as: Annotated[str | None, Field(max_length=64, description="For curators: keep it as a release.")] = None


@data_route(router, "/releases/{name}/refine.json", "POST", example=_EXAMPLE)
def refine(name: Name, known: KnownFacts, caller: AnyCaller, service: TheService) -> dict[str, object]:
    """Answer as a release does that obeys known facts, and tell which facts would give somebody away."""
    if known.save_as is not None:
        if not caller.is_curator:
            raise ForbiddenError("to keep a refined release is for a curator; leave save_as out")
        service.shelf.files.require_free(known.save_as)
    release = service.shelf.release(name)
    facts = [Fact(text, known.source) for text in known.facts]
    verdict = refinement_privacy(facts, release=release)
    refined = refine_release(release, facts, kept_rows=known.kept_rows)
    results = [
        {"query": text, **{when: plain_answer(one.count(text, confidence=known.confidence)) for when, one in both}}
        for text in known.queries
        for both in [(("before", release), ("after", refined))]
    ]
    if known.save_as is not None:
        service.shelf.files.add(known.save_as, service.settings.below("work"), refined.save)
        service.note(caller, "refine", name=name, result=known.save_as, facts=len(facts))
    tested = refined.fact_test
    return {"words": tested.words, "fits": tested.fits, "privacy": str(verdict), "results": results}


@router.get(
    "/releases/{name}/synthetic.{ending}",
    response_class=FileResponse,
    responses=PROBLEMS,
    summary="Download rows that follow a release.",
)
def synthetic(
    name: Name,
    ending: Literal["csv", "csv.gz", "parquet"],
    caller: AnyCaller,
    service: TheService,
    rows: Annotated[int | None, Query(ge=1, le=MOST_ROWS, description="Unset, as many as the table has.")] = None,
) -> Response:
    """Download synthetic rows, drawn to follow what was measured. They are nobody's."""
    release = service.shelf.release(name)
    return _made(service, f"{name}-synthetic.{ending}", lambda path: release.synthesize(rows, path))


@router.get(
    "/releases/{name}/site.zip",
    response_class=FileResponse,
    responses=PROBLEMS,
    summary="Download a site of a release that needs no server.",
)
def site(name: Name, caller: AnyCaller, service: TheService, confidence: Confidence = 0.95) -> Response:
    """Download a site that answers in the browser, with the report, the release card and tables."""
    release = service.shelf.release(name)

    def make(path: Path) -> None:
        release.publish(path.with_suffix(""), name, confidence=confidence)
        make_archive(str(path.with_suffix("")), "zip", path.with_suffix(""))

    return _made(service, f"{name}-site.zip", make)


def _made(service: Service, file: str, make: Callable[[Path], object]) -> Response:
    """Return a file that is made for one answer, and leaves nothing behind."""
    folder = Path(mkdtemp(dir=service.settings.below("work"), prefix="made-"))
    try:
        make(folder / file)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(folder / file, filename=file, background=BackgroundTask(rmtree, folder, ignore_errors=True))
