"""The first page, signing in and out, and whether the service is up."""

from importlib.metadata import version
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from veilcube.service.base import UnauthenticatedError
from veilcube.service.web import (
    AnyCaller,
    TheService,
    client_address,
    data_route,
    end_session_cookie,
    page,
    require_same_site,
    set_session_cookie,
    show,
)

router = APIRouter(tags=["start"])
LONGEST_KEY = 200
_PLACES = ("releases", "datasets", "tables", "questions", "budgets", "schemas", "jobs")


@page(router, "/", "home.html", example={"service": "veilcube", "version": "0.1.0", "you": {"name": "mara"}})
def home(caller: AnyCaller) -> dict[str, object]:
    """Tell who you are and where things are."""
    places = {name: f"/{name}.json" for name in _PLACES}
    return {"service": "veilcube", "version": version("veilcube"), "you": caller.to_dict(), "places": places}


@data_route(router, "/health.json", example={"status": "up"})
async def health() -> dict[str, object]:
    """Tell that the service is up; needs no key."""
    return {"status": "up"}


@router.get("/login", include_in_schema=False, name="login")
async def login(request: Request, after: str = "/") -> Response:
    """Show the form that takes a key."""
    return show(request, "login.html", {"after": _local(after), "problem": None})


@router.post("/login", include_in_schema=False)
async def sign_in(
    request: Request,
    service: TheService,
    key: Annotated[str, Form(max_length=LONGEST_KEY)],
    after: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Begin a session for the key of the form."""
    require_same_site(request)
    address, now = client_address(request), service.now()
    service.wrong_keys.require_any(address)
    stored = await to_thread.run_sync(service.keys.find, key.strip(), now)
    if stored is None:
        service.wrong_keys.take(address)
        service.audit.note(now, "nobody", "none", "sign in", {"address": address}, "refused")
        problem = str(UnauthenticatedError("this key is wrong, was revoked or has expired"))
        return show(request, "login.html", {"after": _local(after), "problem": problem}, 401)
    token, _ = service.sessions.begin(stored.id, now)
    service.audit.note(now, stored.name, stored.role, "sign in", {"key": stored.id, "address": address})
    answer = RedirectResponse(_local(after), 303)
    set_session_cookie(answer, request, token)
    return answer


@router.post("/logout", include_in_schema=False)
def sign_out(caller: AnyCaller, service: TheService) -> Response:
    """End the session of the browser."""
    if caller.session is not None:
        service.sessions.end(caller.session.digest)
        service.note(caller, "sign out")
    answer = RedirectResponse("/login", 303)
    end_session_cookie(answer)
    return answer


def _local(path: str) -> str:
    """Return a path of this service; anything else could lead a person who just signed in elsewhere."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
