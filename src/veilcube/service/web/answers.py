"""What goes back to a program: plain JSON, and one shape for every error: ``{"error": {"code", "message", ...}}``."""

import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from veilcube.errors import (
    BudgetExceededError,
    LedgerError,
    ReleaseFileError,
    VeilcubeError,
)
from veilcube.privacy import write_fraction
from veilcube.service.base import ServiceError

_MOST_FIELDS = 10
_STATUS: Mapping[type[VeilcubeError], int] = {BudgetExceededError: 409, LedgerError: 409, ReleaseFileError: 500}
_CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 406: "not_acceptable"}


def as_plain(value: object) -> object:
    """Return what JSON can say: fractions and days as texts, numbers that it has no word for as null."""
    if isinstance(value, Mapping):
        return {str(name): as_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_plain(one) for one in value]
    return _plain_alone(value)


def _plain_alone(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Fraction):
        return write_fraction(value)
    return as_plain(value.tolist()) if hasattr(value, "tolist") else str(value)


class Json(JSONResponse):
    """An answer for programs."""

    def render(self, content: Any) -> bytes:
        """Return the bytes; what JSON cannot say is made plain first."""
        try:
            return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
        except (TypeError, ValueError):
            return json.dumps(as_plain(content), allow_nan=False, separators=(",", ":")).encode("ascii")


def answer_problem(problem: Exception) -> tuple[int, dict[str, object]]:
    """Return the status and the data for a refusal."""
    if isinstance(problem, ServiceError):
        return problem.status, {"code": problem.code, "message": str(problem), **problem.more}
    if isinstance(problem, VeilcubeError):
        status = next((code for kind, code in _STATUS.items() if isinstance(problem, kind)), 422)
        return status, {"code": _code_of(problem), "message": " ".join(str(problem).split())}
    if isinstance(problem, RequestValidationError):
        return _invalid(problem)
    if isinstance(problem, HTTPException):
        code = _CODES.get(problem.status_code, "http")
        messages = {404: "there is no such page", 405: "this page does not take that method"}
        return problem.status_code, {"code": code, "message": messages.get(problem.status_code, str(problem.detail))}
    raise TypeError(type(problem).__name__)


def problem_json(problem: Exception) -> Response:
    """Return the answer to a program for a refusal."""
    status, told = answer_problem(problem)
    return Json({"error": told}, status, _headers(status, told))


def _headers(status: int, told: Mapping[str, object]) -> dict[str, str]:
    headers = {"WWW-Authenticate": 'Bearer realm="veilcube"'} if status == 401 else {}
    if "retry_after" in told:
        headers["Retry-After"] = str(told["retry_after"])
    return headers


def _code_of(problem: VeilcubeError) -> str:
    name = type(problem).__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _invalid(problem: RequestValidationError) -> tuple[int, dict[str, object]]:
    found = problem.errors()
    if any(one.get("type") == "json_invalid" for one in found):
        return 400, {"code": "not_json", "message": 'the body is not JSON; send an object such as {"queries": [...]}'}
    fields = [{"where": ".".join(map(str, one.get("loc", ()))), "problem": str(one.get("msg", ""))} for one in found][
        :_MOST_FIELDS
    ]
    first = fields[0] if fields else {"where": "the request", "problem": "is not as expected"}
    message = f"{first['where']}: {first['problem']}; see /openapi.json for what is expected"
    return 422, {"code": "invalid", "message": message, "fields": fields}
