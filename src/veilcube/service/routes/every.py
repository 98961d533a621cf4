"""All routers, in the order in which their pages are listed."""

from collections.abc import Sequence

from fastapi import APIRouter

from veilcube.service.routes import budgets, datasets, derived, home, jobs, keys, questions, releases, schemas, tables

ROUTERS: Sequence[APIRouter] = (
    home.router,
    releases.router,
    questions.router,
    derived.router,
    schemas.router,
    datasets.router,
    tables.router,
    budgets.router,
    jobs.router,
    keys.router,
)
