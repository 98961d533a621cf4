"""A service in a folder, with a key of each role, asked in this process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi.testclient import TestClient

from veilcube.service import Settings, create_app
from veilcube.service.web import Service

ROLES = {"cora": "curator", "mara": "analyst", "noor": "analyst", "otto": "auditor"}


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.at = datetime(2030, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def pass_by(self, **time: float) -> None:
        self.at += timedelta(**time)


@dataclass(frozen=True)
class Served:
    """A service, its client, and the keys by name."""

    service: Service
    client: TestClient
    keys: Mapping[str, str]
    clock: Clock

    def headers(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[name]}"}

    def get(self, name: str, path: str, status: int = 200, **params: object) -> dict:
        answer = self.client.get(path, headers=self.headers(name), params=params)
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, name: str, path: str, body: object = None, status: int = 200) -> dict:
        answer = self.client.post(path, headers=self.headers(name), json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def sign_in(self, name: str) -> str:
        """Sign the client in as a browser, and return the token that forms carry."""
        answer = self.client.post("/login", data={"key": self.keys[name]}, follow_redirects=False)
        assert answer.status_code == 303, answer.text
        page = self.client.get("/", headers={"accept": "text/html"}).text
        return page.split('name="csrf" content="')[1].split('"')[0]


@contextmanager
def serving(folder: Path, **settings: object) -> Iterator[Served]:
    """Serve a folder in this process."""
    clock = Clock()
    chosen = {"requests_per_second": 1e6, "burst": 10**6, "now": clock} | settings
    app = create_app(Settings(folder, **chosen))
    service = app.state.service
    keys = {name: service.keys.make(name, role, clock(), "test").text for name, role in ROLES.items()}
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Served(service, client, keys, clock)
