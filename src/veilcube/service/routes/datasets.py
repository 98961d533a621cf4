"""Datasets: registered by curators on the server's side, each with a budget, of which analysts get shares."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from veilcube.curator import check_table
from veilcube.privacy import Neighbours
from veilcube.schema import Schema
from veilcube.service.access import Caller
from veilcube.service.base import NAME_PATTERN
from veilcube.service.public import Amount
from veilcube.service.routes.schemas import schema_files
from veilcube.service.tables import (
    FILE_PATTERN,
    TABLE_PATTERN,
    Dataset,
    Place,
    data_files,
    declared_sources,
    locate,
    open_budget,
    plain_budget,
    plain_shares,
    what_is_left,
    written_at,
)
from veilcube.service.web import (
    AnyCaller,
    Curator,
    Name,
    Service,
    TheService,
    data_route,
    form_route,
    from_form,
    page,
)

router = APIRouter(tags=["datasets"])
_BUDGET = {"currency": "epsilon", "total": "2", "spent": "1/2", "left": "3/2"}
_EXAMPLE = {"name": "visits", "schema_name": "people", "neighbours": "add-remove", "budget": _BUDGET, "share": None}


class NewDataset(BaseModel, extra="forbid"):
    """A table on the server's side: a file below the data folder, or a source that the operator declared."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, examples=["visits"])]
    file: Annotated[str | None, Field(max_length=300, pattern=FILE_PATTERN, examples=["visits.csv"])] = None
    declared: Annotated[str | None, Field(pattern=NAME_PATTERN)] = None
    table: Annotated[str | None, Field(pattern=TABLE_PATTERN, description="In a database: its table or view.")] = None
    schema_name: Annotated[str, Field(alias="schema", pattern=NAME_PATTERN, examples=["people"])]
    person: Annotated[str | None, Field(max_length=200, description="The column that tells whose row it is.")] = None
    max_rows: Annotated[int | None, Field(ge=1, le=10**9)] = None
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    epsilon: Annotated[Amount | None, Field(examples=["2"])] = None
    rho: Annotated[Amount | None, Field(description="In place of epsilon: a budget for Gaussian noise too.")] = None


class NewShare(BaseModel, extra="forbid"):
    """What an analyst may spend of a dataset's budget in all, in its currency; a later word replaces an earlier one."""

    analyst: Annotated[str, Field(pattern=NAME_PATTERN, examples=["mara"])]
    epsilon: Annotated[Amount | None, Field(examples=["1/2"])] = None
    rho: Amount | None = None


@page(router, "/datasets", "datasets.html", example={"datasets": [_EXAMPLE]})
def datasets(caller: AnyCaller, service: TheService) -> dict[str, object]:
    """List the datasets, with what is left of their budgets and of your share."""
    told: dict[str, object] = {"datasets": [_facts(service, caller, one) for one in service.datasets.all()]}
    if caller.is_curator:
        told |= {"files": data_files(service.settings), "declared": sorted(declared_sources(service.settings))}
        told |= {"schemas": schema_files(service).names()}
    return told


@page(router, "/datasets/{name}", "dataset.html", example=_EXAMPLE)
def dataset(name: Name, caller: AnyCaller, service: TheService) -> dict[str, object]:
    """Show a dataset: its schema, whose presence is hidden, and its budget. Nothing of its table."""
    found = service.datasets.find(name)
    facts = _facts(service, caller, found) | {"schema": found.schema.to_dict()}
    if caller.sees_everything:
        facts |= {"shares": plain_shares(service.ledger, name)}
    if caller.is_curator:
        facts |= {"source": str(found.place), "table": found.place.table}
    return facts


@data_route(router, "/datasets.json", "POST", 201, example=_EXAMPLE)
def add_dataset(wish: NewDataset, caller: Curator, service: TheService) -> dict[str, object]:
    """Register a table of the server under a name, for good, and give it its budget. For curators.

    The table is read and checked now, so that no analyst ever meets a row that does not fit the schema.
    """
    found = _read(service, caller, wish)
    with service.tables.turn(found):  # of two who register a name at once, the second is not given the first one's rows
        service.datasets.require_free(found.name)
        try:
            service.tables.open(found)
            open_budget(service.ledger, found, wish.epsilon, wish.rho)
            service.datasets.add(found)
        except BaseException:
            service.tables.forget(found.name)
            raise
    service.note(caller, "add dataset", name=found.name, source=str(found.place), schema=found.schema_name)
    return _facts(service, caller, found)


@data_route(router, "/datasets/check.json", "POST", example={"fits": False, "problems": ["..."]})
def check_dataset(wish: NewDataset, caller: Curator, service: TheService) -> dict[str, object]:
    """List every problem that a table has with its schema, without keeping anything. For curators."""
    found = _read(service, caller, wish)
    problems = check_table(locate(service.settings, found.place), found.schema, table=found.place.table)
    return {"fits": not problems, "problems": [str(problem) for problem in problems]}


@data_route(router, "/datasets/{name}/shares.json", "POST", example={"analyst": "mara", **_BUDGET})
def grant_share(name: Name, wish: NewShare, caller: Curator, service: TheService) -> dict[str, object]:
    """Let an analyst spend a part of a dataset's budget. For curators."""
    found = service.datasets.find(name)
    granted = service.ledger.allow(found.name, wish.analyst, wish.epsilon, rho=wish.rho)
    service.note(caller, "grant share", dataset=name, analyst=wish.analyst, epsilon=wish.epsilon, rho=wish.rho)
    return {"analyst": wish.analyst, **plain_budget(granted)}


@form_route(router, "/datasets")
def add_dataset_by_form(
    wish: Annotated[NewDataset, from_form(NewDataset)], caller: Curator, service: TheService
) -> str:
    """Register a table from a form."""
    add_dataset(wish, caller, service)
    return f"/datasets/{wish.name}"


@form_route(router, "/datasets/{name}/shares")
def grant_share_by_form(
    name: Name, wish: Annotated[NewShare, from_form(NewShare)], caller: Curator, service: TheService
) -> str:
    """Grant a share from a form."""
    grant_share(name, wish, caller, service)
    return f"/datasets/{name}"


def _read(service: Service, caller: Caller, wish: NewDataset) -> Dataset:
    place = Place.read(wish.file, wish.declared, wish.table)
    schema = Schema.from_toml(schema_files(service).existing(wish.schema_name))
    locate(service.settings, place)
    facts = (wish.person, wish.max_rows, str(wish.neighbours), written_at(service.now()), caller.name)
    found = Dataset(wish.name, place, wish.schema_name, schema.to_dict(), *facts)
    _ = found.unit
    return found


def _facts(service: Service, caller: Caller, found: Dataset) -> dict[str, object]:
    facts = {"name": found.name, "schema_name": found.schema_name, "attributes": list(found.schema.names)}
    unit = {"unit": found.unit.words, "person": found.person, "max_rows": found.max_rows}
    made = {"neighbours": found.neighbours, "created": found.created, "made_by": found.made_by}
    return facts | unit | made | what_is_left(service.ledger, found, caller.name)
