"""The application: the pages, the guards around them, and what a service opens and closes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import Response

from veilcube.analyst import ASSETS
from veilcube.errors import VeilcubeError
from veilcube.service.base import Settings
from veilcube.service.routes import ROUTERS
from veilcube.service.web import (
    ROOT,
    BodyGuard,
    FaultGuard,
    HeaderGuard,
    Json,
    Service,
    problem_json,
    show_problem,
)

_ABOUT = (
    "Differentially private releases, and tables behind a budget. Every page is HTML for people and, with .json at its "
    'end, data for programs. Errors have one shape: {"error": {"code": ..., "message": ...}}.'
)


def create_app(settings: Settings) -> FastAPI:
    """Return the application for a folder, which is made unless it is there."""
    service = Service.open(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.keeper.start()
        yield
        service.close()

    app = FastAPI(
        title="veilcube",
        version=version("veilcube"),
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        default_response_class=Json,
        lifespan=lifespan,
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=ROOT / "static"), name="static")
    app.mount("/assets", StaticFiles(directory=ASSETS), name="assets")
    for kind in (VeilcubeError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refuse)
    # The last one added is the outermost.
    app.add_middleware(BodyGuard, largest=settings.largest_body)
    app.add_middleware(FaultGuard)
    app.add_middleware(HeaderGuard)
    return app


async def _refuse(request: Request, problem: Exception) -> Response:
    for_people = not request.url.path.endswith(".json") and "text/html" in request.headers.get("accept", "")
    return show_problem(request, problem) if for_people else problem_json(problem)
