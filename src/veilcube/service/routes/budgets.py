"""Budgets: what was charged, for whom, when and for what, what is left; and the log of who did what."""

from typing import Annotated

from fastapi import APIRouter, Query

from veilcube.service.access import Caller
from veilcube.service.base import ForbiddenError
from veilcube.service.tables import Dataset, plain_charge, plain_shares, what_is_left
from veilcube.service.web import AnyCaller, Name, Overseer, Service, TheService, page

router = APIRouter(tags=["budgets and the log"])
Limit = Annotated[int, Query(ge=1, le=1000)]
Within = Annotated[float, Query(gt=0, le=1e9, description="Forecast for counts within this error.")]
_CHARGE = {"id": 7, "dataset": "visits", "analyst": "mara", "amount": "1/10", "currency": "epsilon", "purpose": "count"}
_EXAMPLE = {"name": "visits", "forecast": {"words": "Enough for about 40 more counts within ±50 ..."}}
_ENTRY = {"id": 12, "at": "2025-01-01T09:00:00.000+00:00", "who": "cora", "action": "grant share", "outcome": "done"}


@page(router, "/budgets", "budgets.html", example={"budgets": [_EXAMPLE]})
def budgets(caller: AnyCaller, service: TheService, within: Within = 50.0) -> dict[str, object]:
    """Show what is left of every dataset, and of your share; curators and auditors see all shares."""
    return {"within": within, "budgets": [_budget(service, caller, one, within) for one in service.datasets.all()]}


@page(router, "/budgets/{name}", "budget.html", example={**_EXAMPLE, "charges": [_CHARGE]})
def budget(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    analyst: Annotated[str | None, Query(max_length=64)] = None,
    since: Annotated[str | None, Query(max_length=40, description="A day or moment, such as 2025-01-31.")] = None,
    within: Within = 50.0,
    limit: Limit = 200,
) -> dict[str, object]:
    """Show the charges to a dataset, the latest first; analysts see their own."""
    found = service.datasets.find(name)
    who = (analyst or None) if caller.sees_everything else caller.name
    if analyst and analyst != who:
        raise ForbiddenError("you see your own charges; a curator or an auditor sees everybody's")
    charges = [one for one in service.ledger.history(name) if who is None or one.analyst == who]
    chosen = [one for one in charges if not since or one.at >= since]
    told = {"charges": [plain_charge(one) for one in reversed(chosen[-limit:])], "of": len(chosen)}
    return _budget(service, caller, found, within) | told | {"analyst": analyst, "since": since}


@page(router, "/log", "log.html", example={"entries": [_ENTRY], "is_whole": True})
def log(
    caller: Overseer,
    service: TheService,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    limit: Limit = 100,
) -> dict[str, object]:
    """Show who did what, the latest first, and whether the log is whole. For curators and auditors."""
    broken = service.audit.first_broken()
    entries = [entry.to_dict() for entry in service.audit.entries(before, limit)]
    return {"entries": entries, "is_whole": broken is None, "first_broken": broken}


def _budget(service: Service, caller: Caller, found: Dataset, within: float) -> dict[str, object]:
    facts = {"name": found.name, **what_is_left(service.ledger, found, caller.name, within)}
    return facts | ({"shares": plain_shares(service.ledger, found.name)} if caller.sees_everything else {})
