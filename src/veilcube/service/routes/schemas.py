"""Schemas: the public descriptions of tables, and plans for them, which read no data and spend nothing."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse, Response

from veilcube.errors import SchemaError
from veilcube.schema import Schema
from veilcube.service.base import NAME_PATTERN, BadRequestError
from veilcube.service.public import NamedFiles, PlanWish, plan_facts, planned
from veilcube.service.web import AnyCaller, Curator, Name, Service, TheService, data_route, form_route, from_form, page
from veilcube.system import atomic_file

router = APIRouter(tags=["schemas and plans"])
LONGEST_TOML = 900_000
_MOST_LABELS = 1000
_EXAMPLE = {"name": "people", "cells": 148, "schema": {"attribute": []}, "toml": "[[attribute]]\n..."}


class NewSchema(BaseModel, extra="forbid"):
    """A schema under a name that nothing has: as the text of a schema file, or as its plain data."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, examples=["people"])]
    toml: Annotated[
        str | None,
        Field(
            max_length=LONGEST_TOML,
            examples=['[[attribute]]\nname = "age"\nkind = "ordinal"\nlow = 17\nhigh = 90\n'],
        ),
    ] = None
    data: Annotated[dict[str, object] | None, Field(description="As `schema` is shown here.")] = None


def schema_files(service: Service) -> NamedFiles:
    """Return the schema files of a service."""
    return NamedFiles(service.settings.below("schemas"), ".toml", "a schema")


@page(router, "/schemas", "schemas.html", example={"schemas": ["people"]})
def schemas(caller: AnyCaller, service: TheService) -> dict[str, object]:
    """List the schemas."""
    return {"schemas": schema_files(service).names()}


@router.get("/schemas/{name}.toml", include_in_schema=False)
def schema_file(name: Name, caller: AnyCaller, service: TheService) -> Response:
    """Return a schema as its file."""
    return PlainTextResponse(schema_files(service).existing(name).read_text(encoding="utf-8"))


@page(router, "/schemas/{name}", "schema.html", example=_EXAMPLE)
def schema(name: Name, caller: AnyCaller, service: TheService) -> dict[str, object]:
    """Show a schema."""
    return _facts(name, Schema.from_toml(schema_files(service).existing(name)))


@data_route(router, "/schemas.json", "POST", 201, example=_EXAMPLE)
def add_schema(wish: NewSchema, caller: Curator, service: TheService) -> dict[str, object]:
    """Keep a schema under a name, for good. For curators."""
    path = schema_files(service).require_free(wish.name)
    made = _read(wish)
    with atomic_file(path) as file:
        file.write(made.to_toml().encode())
    service.note(caller, "add schema", name=wish.name, fingerprint=made.fingerprint())
    return _facts(wish.name, made)


@data_route(router, "/schemas/check.json", "POST", example={**_EXAMPLE, "name": "draft"})
def check_schema(wish: NewSchema, caller: AnyCaller) -> dict[str, object]:
    """Check a schema and show what it says, without keeping it."""
    return _facts(wish.name, _read(wish))


@page(router, "/schemas/{name}/plan", "plan.html", example={"epsilon": "1", "expected_error": 12.3, "half_width": 24.1})
def plan_of_schema(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    wish: Annotated[PlanWish, Query()],
) -> dict[str, object]:
    """Tell what a release would cost and how wrong its answers would be; reads no data and spends nothing.

    Give `epsilon` (or `rho`), or in its place the `error` that is wanted, and example `queries` as SQL.
    """
    told = {"schema_name": name, "wish": wish.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
    return told | _planned(service, name, wish)


@form_route(router, "/schemas")
def add_schema_by_form(wish: Annotated[NewSchema, from_form(NewSchema)], caller: Curator, service: TheService) -> str:
    """Keep a schema from a form."""
    add_schema(wish, caller, service)
    return f"/schemas/{wish.name}"


@data_route(router, "/schemas/{name}/plan.json", "POST", example={"epsilon": "1", "expected_error": 12.3})
def plan_for_many(name: Name, wish: PlanWish, caller: AnyCaller, service: TheService) -> dict[str, object]:
    """Plan for many questions at once."""
    return {"schema_name": name} | _planned(service, name, wish)


def _planned(service: Service, name: str, wish: PlanWish) -> dict[str, object]:
    return plan_facts(planned(Schema.from_toml(schema_files(service).existing(name)), wish), wish)


def _read(wish: NewSchema) -> Schema:
    if (wish.toml is None) == (wish.data is None):
        raise BadRequestError("give the schema either as toml, the text of its file, or as data")
    if wish.toml is None:
        return Schema.from_dict(wish.data or {})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sent.toml"
        path.write_text(wish.toml, encoding="utf-8")
        try:
            return Schema.from_toml(path)
        except SchemaError as problem:
            raise SchemaError(str(problem).replace(str(path), "that was sent")) from None


def _facts(name: str, made: Schema) -> dict[str, object]:
    facts = {"name": name, "cells": made.cells, "shape": list(made.shape), "fingerprint": made.fingerprint()}
    labels = {one.name: one.labels()[:_MOST_LABELS] for one in made}
    return facts | {"schema": made.to_dict(), "labels": labels, "toml": made.to_toml()}
