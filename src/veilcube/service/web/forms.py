"""Forms: what a browser sends without any script is read into the same models that programs send as JSON."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_origin

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.responses import RedirectResponse, Response

Model = TypeVar("Model", bound=BaseModel)
_OWN = ("csrf",)


def from_form(model: type[Model]) -> Any:
    """Return what lets a page take a model from its form; an empty field is one that was left out.

    A field that holds a list has an entry in each line, or comes several times.
    """

    async def read(request: Request) -> Model:
        form = await request.form()
        given: dict[str, object] = {}
        for name in dict.fromkeys(form.keys()):
            texts = [text for text in form.getlist(name) if isinstance(text, str) and text.strip()]
            if name not in _OWN and texts:
                given[name] = _split(texts) if _holds_a_list(model, name) else texts[-1]
        try:
            return model.model_validate(given)
        except ValidationError as problem:
            raise RequestValidationError(problem.errors()) from None

    return Depends(read)


def form_route(router: APIRouter, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a browser send a form to a path; the function returns the path of the page to show next."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def answer(**arguments: Any) -> Response:
            after = await to_thread.run_sync(lambda: function(**arguments))
            return after if isinstance(after, Response) else RedirectResponse(after, 303)

        router.add_api_route(path, answer, methods=["POST"], include_in_schema=False)
        return function

    return add


def _split(texts: list[str]) -> list[str]:
    return [line.strip() for text in texts for line in text.splitlines() if line.strip()]


def _holds_a_list(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is not None and get_origin(field.annotation) is list
