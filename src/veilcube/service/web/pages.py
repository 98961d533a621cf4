"""Pages: a function returns plain data, which programs get at its path with ``.json`` and people as a template."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path as FilePath
from typing import Annotated, Any
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Path, Request
from fastapi.templating import Jinja2Templates
from starlette.responses import RedirectResponse, Response

from veilcube.service.base import NAME_PATTERN, BadRequestError, UnauthenticatedError
from veilcube.service.web.answers import Json, answer_problem, as_plain

ROOT = FilePath(__file__).parents[1]
TEMPLATES = Jinja2Templates(directory=ROOT / "templates")
Name = Annotated[str, Path(pattern=NAME_PATTERN, description="A name: letters, digits, '-' and '_'.")]
Function = Callable[..., Any]
Handler = Callable[..., Any]
_REQUEST = "the_request"

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}


def _told(code: str, message: str) -> dict[str, Any]:
    example = {"error": {"code": code, "message": message}}
    return {"description": message, "content": {"application/json": {"schema": _ERROR, "example": example}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _told("not_json", "the request is not well formed"),
    401: _told("unauthenticated", "nobody knows who is asking"),
    403: _told("forbidden", "whoever is asking may not do this"),
    404: _told("not_found", "there is no such thing for whoever is asking"),
    409: _told("conflict", "it contradicts what is there, or the budget does not allow it"),
    413: _told("too_large", "the body is too large"),
    422: _told("invalid", "what was sent does not make sense"),
    429: _told("too_many_requests", "too many requests in a short time"),
    503: _told("unavailable", "it is there and cannot be used now"),
}


def page(router: APIRouter, path: str, template: str = "data.html", **options: Any) -> Callable[[Function], Function]:
    """Serve what a function returns: at ``path`` as HTML by a template, at ``path`` with ``.json`` as JSON.

    The function takes what any FastAPI function takes and returns plain data, or a ready response.
    """

    def add(function: Function) -> Function:
        data_route(router, f"{'/index' if path == '/' else path}.json", **options)(function)
        router.add_api_route(path, _as_html(function, template), include_in_schema=False)
        return function

    return add


def data_route(
    router: APIRouter, path: str, method: str = "GET", status: int = 200, **options: Any
) -> Callable[[Function], Function]:
    """Serve what a function returns as JSON, and describe it in the OpenAPI document."""

    def add(function: Function) -> Function:
        example = options.pop("example", None)
        told = {} if example is None else {"example": example}
        answer: dict[int | str, dict[str, Any]] = {
            status: {"content": {"application/json": {"schema": {"type": "object"}, **told}}}
        }
        router.add_api_route(
            path,
            _as_json(function, status),
            methods=[method],
            status_code=status,
            responses={**PROBLEMS, **answer},
            summary=(function.__doc__ or "").strip().split("\n")[0],
            description=inspect.cleandoc(function.__doc__ or ""),
            operation_id=f"{method.lower()}_{function.__name__}",
            **options,
        )
        return function

    return add


def show(request: Request, template: str, data: object, status: int = 200) -> Response:
    """Return a template filled with data: it finds ``data``, ``caller`` (or none) and ``csrf``."""
    caller = getattr(request.state, "caller", None)
    session = getattr(caller, "session", None)
    filled: Mapping[str, object] = {
        "data": as_plain(data),
        "caller": caller,
        "csrf": session.csrf if session is not None else "",
        "path": request.url.path,
        "query": request.url.query,
    }
    return TEMPLATES.TemplateResponse(request, template, dict(filled), status_code=status)


def show_problem(request: Request, problem: Exception) -> Response:
    """Return a refusal for people; a stranger is sent to sign in."""
    status, told = answer_problem(problem)
    if isinstance(problem, UnauthenticatedError) and request.method == "GET":
        after = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?{urlencode({'after': after})}", 303)
    return show(request, "error.html", told | {"status": status}, status)


async def _run(function: Function, arguments: dict[str, Any]) -> Any:
    try:
        if inspect.iscoroutinefunction(function):
            return await function(**arguments)
        return await to_thread.run_sync(lambda: function(**arguments))
    except UnicodeEncodeError:
        raise BadRequestError("the request holds halves of characters, which are no text; leave them out") from None


def _as_json(function: Function, status: int) -> Handler:
    @wraps(function)
    async def answer(**arguments: Any) -> Response:
        found = await _run(function, arguments)
        return found if isinstance(found, Response) else Json(found, status)

    return answer


def _as_html(function: Function, template: str) -> Handler:
    signature = inspect.signature(function)
    own = inspect.Parameter(_REQUEST, inspect.Parameter.KEYWORD_ONLY, annotation=Request)

    @wraps(function)
    async def answer(**arguments: Any) -> Response:
        request = arguments.pop(_REQUEST)
        found = await _run(function, arguments)
        return found if isinstance(found, Response) else show(request, template, found)

    answer.__signature__ = signature.replace(parameters=[*signature.parameters.values(), own])  # type: ignore[attr-defined]
    return answer
