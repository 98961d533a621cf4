"""``veilcube serve``: datasets, releases and budgets in a folder, served to people and programs."""

from pathlib import Path
from typing import Annotated

import typer

from veilcube.errors import QueryError
from veilcube.system import MissingExtraError

_NEEDS = ("fastapi", "uvicorn", "argon2", "jinja2", "python_multipart")


def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the service keeps all it has; made if need be.")
    ],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; unset, only this machine can connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 for any.")] = 8000,
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="URL", help="The ledger; unset, ledger.db in the folder.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="NAME=PLACE", help="A table outside the folder that may be registered; may be repeated."
        ),
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Believe the proxy on this machine where requests come from.")
    ] = False,
    per_second: Annotated[
        float, typer.Option("--requests-per-second", metavar="N", min=0.1, help="The most that one key may ask.")
    ] = 100.0,
) -> None:
    """Serve datasets, releases and budgets of a folder to people and programs."""
    try:
        from veilcube.service import Settings, serve as run  # noqa: PLC0415 - an extra, needed only to serve
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] not in _NEEDS:
            raise
        raise MissingExtraError("a service needs FastAPI and more; run pip install 'veilcube[service]'") from problem
    settings = Settings(
        folder.absolute(),
        host=host,
        port=port,
        ledger=ledger,
        sources=dict(_read_source(text) for text in source or []),
        behind_proxy=behind_proxy,
        requests_per_second=per_second,
        burst=max(1, round(4 * per_second)),
    )
    run(settings)


def _read_source(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not (name and equals and place):
        raise QueryError("--source takes a name and a place, such as visits=/srv/visits.csv")
    return name, place
