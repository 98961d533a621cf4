"""Releases that are made here: planned for nothing, confirmed by a curator, and carried out in the background."""

from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from veilcube.privacy import LONGEST_TEXT, read_epsilon
from veilcube.service.access import Caller
from veilcube.service.base import NAME_PATTERN, ConflictError, OverBudgetError
from veilcube.service.jobs import Job, price_facts
from veilcube.service.public import PlanWish
from veilcube.service.tables import written_at
from veilcube.service.web import Curator, Name, Overseer, TheService, data_route, form_route, from_form, page

router = APIRouter(tags=["making releases"])
JobId = Annotated[int, Path(ge=1, le=2**53)]
_JOB = {"id": 3, "dataset": "visits", "result": "visits-2025", "state": "running", "step": "counting", "share": 0.4}
_PRICE = {"name": "visits", "charge": "1/2", "currency": "epsilon", "left_after": "3/2", "why_not": None}


class NewRelease(PlanWish, extra="forbid"):
    """A release to make: its name, its plan, and the charge as the plan told it, which confirms it."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, examples=["visits-2025"])]
    charge: Annotated[
        Annotated[str, Field(max_length=2000)] | float,
        Field(description="What the plan says will be charged: any other charge is refused.", examples=["1/2"]),
    ]


@page(router, "/datasets/{name}/plan", "dataset_plan.html", example=_PRICE)
def plan_of_dataset(
    name: Name, caller: Curator, service: TheService, wish: Annotated[PlanWish, Query()]
) -> dict[str, object]:
    """Tell what a release of a dataset would be charged and how wrong its answers would be. For curators.

    No data is read and nothing is spent until `POST /datasets/NAME/releases.json` confirms the charge.
    """
    facts = price_facts(service.ledger, service.datasets.find(name), wish)
    return facts | {"wish": wish.model_dump(mode="json", by_alias=True, exclude_defaults=True)}


@data_route(router, "/datasets/{name}/releases.json", "POST", 202, example=_JOB)
def make_release(name: Name, wish: NewRelease, caller: Curator, service: TheService) -> dict[str, object]:
    """Queue a release of a dataset, for a charge that was planned before. For curators.

    The charge is on disk before any noise is drawn; the release appears under /releases when its job is done.
    """
    plain = PlanWish.model_validate(wish.model_dump(by_alias=True, exclude_unset=True, exclude={"name", "charge"}))
    service.shelf.files.require_free(wish.name)
    facts = price_facts(service.ledger, service.datasets.find(name), plain)
    if facts["why_not"] is not None:
        raise OverBudgetError(f"the release was not queued and nothing charged: {facts['why_not']}")
    if not _is(wish.charge, str(facts["charge"])):
        raise ConflictError(
            f"the plan is charged {facts['currency']} {facts['charge']}, which is not what was confirmed; plan again"
        )
    plan = plain.model_dump(mode="json", by_alias=True, exclude_unset=True)
    told = {"plan": plan, "charge": facts["charge"]}
    job = service.jobs.add(name, wish.name, told, caller.name, written_at(service.now()))
    service.note(caller, "make release", dataset=name, result=wish.name, job=job.id, charge=facts["charge"])
    service.keeper.wake()
    return _facts(caller, job)


@page(router, "/jobs", "jobs.html", example={"jobs": [_JOB]})
def jobs(caller: Overseer, service: TheService) -> dict[str, object]:
    """List the releases that were asked for, the latest first. For curators and auditors."""
    return {"jobs": [_facts(caller, job) for job in service.jobs.latest()]}


@page(router, "/jobs/{id}", "job.html", example=_JOB)
def job(id: JobId, caller: Overseer, service: TheService) -> dict[str, object]:
    """Tell how far a release is, and what it was charged. For curators and auditors."""
    return _facts(caller, service.jobs.find(id))


@form_route(router, "/datasets/{name}/releases")
def make_release_by_form(
    name: Name, wish: Annotated[NewRelease, from_form(NewRelease)], caller: Curator, service: TheService
) -> str:
    """Confirm a release from a form."""
    return f"/jobs/{make_release(name, wish, caller, service)['id']}"


def _facts(caller: Caller, job: Job) -> dict[str, object]:
    """Return a job; why one failed may depend on the table, so that only curators read it."""
    told = job.to_dict()
    return told if caller.is_curator else told | {"message": None if job.message is None else "a curator sees why"}


def _is(charge: str | float, planned: str) -> bool:
    """Whether a charge that was confirmed is the one that was planned; a long fraction is told by its text."""
    if isinstance(charge, str) and len(charge) > LONGEST_TEXT:
        return charge == planned
    return charge == planned or read_epsilon(charge) == Fraction(planned)
