"""Requests to a service: one shape in, one shape of errors out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from veilcube import errors
from veilcube.errors import QueryError, VeilcubeError
from veilcube.service.base import ServiceError
from veilcube.system import atomic_file, load_extra

_TIMEOUT = 120.0
UNREACHABLE = "unreachable"
_KINDS: Mapping[str, type[VeilcubeError]] = {
    "schema": errors.SchemaError,
    "table": errors.TableError,
    "query": errors.QueryError,
    "invalid": errors.QueryError,
    "privacy": errors.PrivacyError,
    "budget_exceeded": errors.BudgetExceededError,
    "ledger": errors.LedgerError,
    "release_file": errors.ReleaseFileError,
    "plan": errors.PlanError,
    "capacity": errors.CapacityError,
}


class Transport:
    """A connection to one service with one key; threads may share it."""

    def __init__(self, url: str, key: str) -> None:
        httpx = load_extra("httpx", "connecting", "service")
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise QueryError("the address of a service begins with http:// or https://")
        if not isinstance(key, str) or not key.isascii() or not key.startswith("vc_"):
            raise QueryError("the key of a service begins with vc_; a curator of the service makes one")
        self._failures: type[Exception] = httpx.HTTPError
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=_TIMEOUT)

    def get(self, *parts: str, **params: object) -> dict[str, Any]:
        """Return the data of a page; parameters that are None are left out."""
        given = {name: value for name, value in params.items() if value is not None}
        return self._plain("GET", f"{place(*parts)}.json", params=given)

    def post(self, body: object, *parts: str) -> dict[str, Any]:
        """Send data to a page and return what it answers."""
        return self._plain("POST", f"{place(*parts)}.json", json=body)

    def save(self, path: Path, address: str) -> None:
        """Write what is at an address into a file, whole or not at all."""
        answer = self._send("GET", address)
        with atomic_file(path) as file:
            file.write(answer.content)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _plain(self, method: str, address: str, **what: Any) -> dict[str, Any]:
        found = self._send(method, address, **what).json()
        if not isinstance(found, dict):
            raise ServiceError(f"{self.url} answers as no veilcube service does; check the address")
        return found

    def _send(self, method: str, address: str, **what: Any) -> Any:
        try:
            answer = self._client.request(method, address, **what)
        except self._failures as problem:
            lost = ServiceError(f"{self.url} cannot be reached ({type(problem).__name__}); check the address")
            lost.status, lost.code = 503, UNREACHABLE
            raise lost from None
        if answer.is_success:
            return answer
        raise _refusal(self.url, answer)


def place(*parts: str) -> str:
    """Return the path of a page; what stands in a part stays in it."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _refusal(url: str, answer: Any) -> VeilcubeError:
    try:
        told = answer.json()["error"]
        code, message = str(told["code"]), str(told["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"{url} answered with status {answer.status_code}, as no veilcube service does")
    if code in _KINDS:
        return _KINDS[code](message)
    problem = ServiceError(message)
    problem.status, problem.code = answer.status_code, code
    return problem
