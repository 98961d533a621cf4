"""The gate: who sends a request, by a key in its header or a browser's session, and whether they may do it.

A browser sends its cookie whoever wrote the page, so what changes anything needs the session's token as well: in the
header ``X-CSRF-Token`` or the field ``csrf`` of a form.
"""

from collections.abc import Callable
from typing import Annotated, Any

from anyio import to_thread
from fastapi import Depends, Request, Response

from veilcube.service.access import Caller, Role, Session
from veilcube.service.base import ForbiddenError, UnauthenticatedError
from veilcube.service.web.context import Service, TheService

SESSION_COOKIE = "veilcube_session"
_SAFE = ("GET", "HEAD", "OPTIONS")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def _any_caller(request: Request, service: TheService) -> Caller:
    """Return who sends the request; refuses nobody but strangers, forged forms and who asks too often."""
    caller = await _by_key(request, service) or _by_session(request, service)
    if caller is None:
        raise UnauthenticatedError(
            "send a key as 'Authorization: Bearer vc_...', or sign in with it at /login; a curator makes keys"
        )
    service.limits.take(caller.key)
    if caller.session is not None and request.method not in _SAFE:
        await _require_own_form(request, caller.session)
    request.state.caller = caller
    return caller


async def _by_key(request: Request, service: Service) -> Caller | None:
    header = request.headers.get("authorization", "")
    if not header:
        return None
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer":
        raise UnauthenticatedError("send the key as 'Authorization: Bearer vc_...'")
    address, key, now = client_address(request), text.strip(), service.now()
    if service.keys.is_remembered(key):
        stored = service.keys.find(key, now)
    else:
        service.wrong_keys.require_any(address)
        stored = await to_thread.run_sync(service.keys.find, key, now)
    if stored is None:
        service.wrong_keys.take(address)
        service.audit.note(now, "nobody", "none", "wrong key", {"address": address}, "refused")
        raise UnauthenticatedError("the key is wrong, was revoked or has expired; ask a curator for another one")
    return Caller(stored.id, stored.name, Role(stored.role))


def _by_session(request: Request, service: Service) -> Caller | None:
    token = request.cookies.get(SESSION_COOKIE)
    if not token:
        return None
    now = service.now()
    session = service.sessions.find(token, now)
    stored = None if session is None else service.keys.by_id(session.key)
    if session is None or stored is None or not stored.is_good(now):
        return None
    return Caller(stored.id, stored.name, Role(stored.role), session)


async def _require_own_form(request: Request, session: Session) -> None:
    require_same_site(request)
    token = request.headers.get("x-csrf-token", "")
    if not token and request.headers.get("content-type", "").partition(";")[0].strip().lower() in _FORMS:
        sent = (await request.form()).get("csrf", "")
        token = sent if isinstance(sent, str) else ""
    if not session.is_own_form(token):
        raise ForbiddenError("the form is out of date; load the page again and repeat what you did")


def require_same_site(request: Request) -> None:
    """Refuse what a page of another site sends."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ForbiddenError("this was sent by a page of another site, and was left alone")


def client_address(request: Request) -> str:
    """Return where a request comes from; behind a proxy uvicorn has put the client's address there."""
    return request.client.host if request.client else "unknown"


def _with_role(*roles: Role) -> Callable[..., Any]:
    async def allowed(service: TheService, caller: AnyCaller, request: Request) -> Caller:
        if caller.role not in roles:
            service.note(caller, f"{request.method} {request.url.path}", "refused")
            words = " or ".join(str(role) for role in roles)
            raise ForbiddenError(f"this is for a {words}; '{caller.name}' is {_article(caller.role)}")
        return caller

    return allowed


def _article(role: Role) -> str:
    return f"a {role}" if role is Role.CURATOR else f"an {role}"


AnyCaller = Annotated[Caller, Depends(_any_caller)]
Curator = Annotated[Caller, Depends(_with_role(Role.CURATOR))]
Overseer = Annotated[Caller, Depends(_with_role(Role.CURATOR, Role.AUDITOR))]
Asker = Annotated[Caller, Depends(_with_role(Role.CURATOR, Role.ANALYST))]


def set_session_cookie(response: Response, request: Request, token: str) -> None:
    """Hand the token to the browser: no script reads it, no other site sends it along, and it ends with the browser."""
    is_secure = request.url.scheme == "https"
    response.set_cookie(SESSION_COOKIE, token, httponly=True, samesite="lax", secure=is_secure, path="/")


def end_session_cookie(response: Response) -> None:
    """Let the browser forget the token."""
    response.delete_cookie(SESSION_COOKIE, path="/")
