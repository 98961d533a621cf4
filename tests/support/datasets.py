"""A dataset in a service: a table of visits on the server's side, its schema, and shares of its budget."""

from pathlib import Path

import veilcube as vc
from support.services import Served

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 20, 59),
        vc.Nominal("sex", ["Female", "Male"]),
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": ["Judge"]}),
    ]
)
JOBS = ("Nurse", "Aide", "Judge")


def visits() -> str:
    """Return a table of 1200 rows as CSV; the person of each third row is the same."""
    rows = [f"{20 + n % 40},{('Female', 'Male')[n % 2]},{JOBS[n % 3]},p{n // 3}" for n in range(1200)]
    return "\n".join(["age,sex,job,person", *rows]) + "\n"


def add_visits(served: Served, name: str = "visits", **wish: object) -> dict:
    """Put the table into the data folder, keep its schema, and register it."""
    folder: Path = served.service.settings.below("data")
    (folder / "visits.csv").write_text(visits(), encoding="utf-8")
    if not (served.service.settings.below("schemas") / "people.toml").exists():
        served.post("cora", "/schemas.json", {"name": "people", "toml": SCHEMA.to_toml()}, 201)
    chosen = {"name": name, "file": "visits.csv", "schema": "people"} | ({} if "rho" in wish else {"epsilon": "2"})
    return served.post("cora", "/datasets.json", chosen | wish, 201)


def grant(served: Served, analyst: str, epsilon: object, name: str = "visits") -> dict:
    return served.post("cora", f"/datasets/{name}/shares.json", {"analyst": analyst, "epsilon": epsilon})
