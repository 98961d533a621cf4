"""All routers, in the order in which their pages are listed."""

from collections.abc import Sequence

from fastapi import APIRouter

from veilcube.service.routes import home, keys, questions, releases, schemas

ROUTERS: Sequence[APIRouter] = (
    home.router,
    releases.router,
    questions.router,
    schemas.router,
    keys.router,
)
