"""Every reader of what others wrote: schemas, SQL, sentences of facts, release files, codebooks, requests."""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import veilcube as vc
from fuzz.engine import Target
from support.services import Served, serving
from veilcube.analyst.refine.facts.sentences import read_sentence
from veilcube.query.sql import read_sql

SCHEMA_TEXT = """
[[attribute]]
name = "age"
kind = "ordinal"
low = 17
high = 40

[[attribute]]
name = "income"
kind = "ordinal"
edges = [0, 10.5, 20]
outside = "clip"

[[attribute]]
name = "job"
kind = "nominal"
missing = "cell"
hierarchy = { Care = ["Nurse", "Aide"], Office = ["Judge"] }

[[impossible]]
age = [17, 20]
job = "Judge"
"""
SQL = (
    "age BETWEEN 30 AND 39 AND job = 'Nurse'",
    "SELECT COUNT(*) FROM people WHERE NOT (age < 20 OR income >= 10.5) GROUP BY LEVEL(job, 1)",
    "SELECT AVG(age), MEDIAN(age), QUANTILE_CONT(age, 0.9) FROM t WHERE job IN ('Nurse', 'Aide') AND age IS NOT NULL",
    "CASE WHEN age > 3 THEN 1 ELSE 0 END = 1",
)
FACTS = ("A + B + C = 80", "2*A - (B + 1)/2 <= .5e1", "0 <= `30 to 39` <= 10", "A ≤ passed", "-A == - - 2")
CODEBOOK = 'code,parent\nCare,\nNurse,Care\nAide,Care\nCourt,\n"Judge, high",Court\n'
BODIES = (
    b'POST /releases/adult/answer.json {"questions": [{"where": "age > 20"}]}',
    b'POST /schemas/check.json {"name": "a", "toml": "[[attribute]]\\nname = 1"}',
    b'POST /schemas/check.json {"name": "a", "schema": {"attribute": [{"name": "age", "kind": "ordinal", "low": 1}]}}',
    b'POST /schemas/people/plan.json {"epsilon": "1", "strategy": "tree"}',
    b"GET /releases/adult/count.json?where=age%20BETWEEN%2020%20AND%2030&confidence=0.9&estimator=best",
    b"GET /releases/adult/group.json?by=job&statistic=mean&column=age",
    b"GET /releases/adult/sql.json?statement=SELECT%20COUNT(*)%20FROM%20t",
    b"GET /releases/adult/quantile.json?column=age&q=0.5",
    b'POST /keys.json {"name": "x", "role": "analyst"}',
    b"POST /login key=vc_nothing",
)


def _schema() -> vc.Schema:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "people.toml")
        path.write_text(SCHEMA_TEXT, encoding="utf-8")
        return vc.Schema.from_toml(path)


def from_file(folder: Path, name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Return a reader of bytes that reads them from a file."""
    path = folder / name

    def reader(content: bytes) -> object:
        path.write_bytes(content)
        return read(path)

    return reader


def ask(path: Path) -> object:
    """Open a release and ask it something."""
    release = vc.open(path)
    return release.count(), repr(release), release.privacy


def of_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """Return a reader of bytes that reads them as text, whatever they are."""
    return lambda content: read(content.decode("utf-8", "replace"))


class ServiceFaultError(Exception):
    """A service answered that it failed, or said something else than its one shape of errors."""


def request(served: Served) -> Callable[[bytes], object]:
    """Return a reader that sends a line as a request: a method, a path and a body."""
    names = itertools.cycle(("cora", "mara", "otto"))

    def send(content: bytes) -> object:
        head, _, body = content.partition(b" {")
        method, _, path = head.decode("utf-8", "replace").partition(" ")
        url = "/" + "".join(letter for letter in path if letter.isprintable()).lstrip("/")[:4_000]
        headers = served.headers(next(names)) | {"content-type": "application/json", "accept": "application/json"}
        kind = method if method in ("GET", "POST", "PUT", "DELETE", "PATCH") else "POST"
        answer = served.client.request(kind, url, content=b"{" + body if body else b"", headers=headers)
        if answer.status_code >= 500 or "Traceback" in answer.text:
            raise ServiceFaultError(f"{answer.status_code} {answer.text[:200]}")
        return answer.status_code

    return send


@contextmanager
def targets() -> Iterator[dict[str, Target]]:
    """Give every target, with a folder and a service that it needs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        served = stack.enter_context(serving(folder / "service"))
        schema = _schema()
        cube = vc.Cube(schema, [[[3] * 4] * 2] * 24) if schema.shape == (24, 2, 4) else None
        assert cube is not None
        made = []
        for strategy in ("identity", "tree", "marginals"):
            vc.release(cube, epsilon=1, strategy=strategy).save(folder / f"{strategy}.veil")
            made.append((folder / f"{strategy}.veil").read_bytes())
        (served.service.settings.below("releases") / "adult.veil").write_bytes(made[0])
        served.post("cora", "/schemas.json", {"name": "people", "toml": SCHEMA_TEXT}, 201)
        yield {
            target.name: target
            for target in (
                Target("schema", from_file(folder, "s.toml", vc.Schema.from_toml), [SCHEMA_TEXT.encode()]),
                Target("sql", of_text(lambda text: read_sql(schema, text)), [text.encode() for text in SQL]),
                Target("facts", of_text(read_sentence), [text.encode() for text in FACTS]),
                Target("release", from_file(folder, "r.veil", ask), made),
                Target("codebook", from_file(folder, "c.csv", vc.codebook), [CODEBOOK.encode()]),
                Target("http", request(served), BODIES),
            )
        }
