"""Keys: made and revoked by curators, shown once."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from veilcube.service.access import Role, StoredKey
from veilcube.service.base import NAME_PATTERN
from veilcube.service.web import Curator, Overseer, TheService, data_route, form_route, from_form, page, show

router = APIRouter(tags=["keys"])
KeyId = Annotated[str, Path(pattern="^[a-z2-7]{16}$", description="The id of a key, the middle part of its text.")]
_EXAMPLE = {
    "id": "abcdefghijklmnop",
    "name": "mara",
    "role": "analyst",
    "created": "2025-01-01T09:00:00+00:00",
    "expires": None,
    "revoked": None,
    "made_by": "first",
    "is_good": True,
}


class NewKey(BaseModel, extra="forbid"):
    """Whom a key is for."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, examples=["mara"])]
    role: Annotated[Role, Field(examples=["analyst"])]
    days: Annotated[int | None, Field(ge=1, le=3650, description="It expires after so many days; unset, never.")] = None


@page(router, "/keys", "keys.html", example={"keys": [_EXAMPLE]})
def keys(caller: Overseer, service: TheService) -> dict[str, object]:
    """List the keys without their secrets. For curators and auditors."""
    return {"keys": [_facts(service, stored) for stored in service.keys.all()]}


@data_route(router, "/keys.json", "POST", 201, example={"text": "vc_abcdefghijklmnop_...", "key": _EXAMPLE})
def make_key(wish: NewKey, caller: Curator, service: TheService) -> dict[str, object]:
    """Make a key for somebody. Its text is in this answer and nowhere else. For curators.

    The name of an analyst's key is the name that her questions are charged under.
    """
    now = service.now()
    expires = None if wish.days is None else now + timedelta(days=wish.days)
    made = service.keys.make(wish.name, str(wish.role), now, caller.name, expires)
    service.note(caller, "make key", id=made.stored.id, name=wish.name, for_role=str(wish.role))
    return {"text": made.text, "key": _facts(service, made.stored)}


@data_route(router, "/keys/{id}/revoke.json", "POST", example={"key": {**_EXAMPLE, "is_good": False}})
def revoke_key(id: KeyId, caller: Curator, service: TheService) -> dict[str, object]:
    """Let a key open nothing from now on, in browsers neither. For curators."""
    service.keys.revoke(id, service.now())
    service.note(caller, "revoke key", id=id)
    stored = service.keys.by_id(id)
    return {"key": None if stored is None else _facts(service, stored)}


@form_route(router, "/keys")
def make_key_by_form(
    request: Request, wish: Annotated[NewKey, from_form(NewKey)], caller: Curator, service: TheService
) -> Response:
    """Make a key from a form, and show its text once: the page is never kept."""
    made = make_key(wish, caller, service)
    return show(request, "keys.html", keys(caller, service) | made, 201)


@form_route(router, "/keys/{id}/revoke")
def revoke_key_by_form(id: KeyId, caller: Curator, service: TheService) -> str:
    """Revoke a key from a form."""
    revoke_key(id, caller, service)
    return "/keys"


def _facts(service: TheService, stored: StoredKey) -> dict[str, object]:
    return vars(stored) | {"is_good": stored.is_good(service.now())}
