"""The process that carries out one job: plan, count, charge, draw, save. It holds a lock as long as it lives.

It is told which job by its standard input, so that no list of processes shows the address of a database.
"""

import fcntl
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from veilcube.curator import Ledger
from veilcube.errors import PublicNote, VeilcubeError
from veilcube.privacy import write_fraction
from veilcube.service.base import ConflictError, Settings
from veilcube.service.jobs.pricing import plan_for, price_of
from veilcube.service.jobs.queue import Job, Jobs
from veilcube.service.jobs.results import charge_of, lock_of, note_of, publish, unfinished
from veilcube.service.public import PlanWish
from veilcube.service.store import Database
from veilcube.service.tables import Datasets, locate
from veilcube.session import release

_SECONDS_BETWEEN_REPORTS = 0.5


def main() -> None:
    """Carry out the job that standard input names."""
    told = json.load(sys.stdin)
    settings = Settings(Path(told["folder"]), ledger=told["ledger"], sources=told["sources"])
    with lock_of(settings, told["job"]).open("w") as lock:
        if _is_ours(lock):
            carry_out(settings, told["job"])


def carry_out(settings: Settings, number: int) -> None:
    """Carry out a job that nobody began."""
    database = Database(settings.database)
    jobs, ledger = Jobs(database), Ledger(settings.ledger_url)
    if not jobs.claim(number):
        return
    job = jobs.find(number)
    try:
        _release(settings, database, job)
        publish(settings, job)
    except BaseException as problem:
        jobs.end(number, "failed", _words(problem), charge_of(ledger, database.mark, job))
        if not isinstance(problem, Exception):
            raise
        return
    jobs.end(number, "done", None, charge_of(ledger, database.mark, job))
    unfinished(settings, job).unlink(missing_ok=True)


def _release(settings: Settings, database: Database, job: Job) -> None:
    jobs, ledger = Jobs(database), Ledger(settings.ledger_url)
    dataset = Datasets(database).find(job.dataset)
    chosen = plan_for(ledger, dataset, PlanWish.model_validate(job.wish["plan"]))
    price = price_of(ledger, dataset, chosen)
    if price is None or write_fraction(price) != job.wish["charge"]:
        raise ConflictError("the plan costs another amount than was confirmed; plan again, and confirm that")
    jobs.tell(job.id, "counting")
    made = release(
        locate(settings, dataset.place),
        schema=dataset.schema,
        plan=chosen,
        person=dataset.person,
        max_rows=dataset.max_rows,
        table=dataset.place.table,
        ledger=ledger,
        dataset=dataset.name,
        analyst=job.owner,
        note=note_of(database.mark, job),
        output=f"{job.result}.veil",
        progress=_reporting(jobs, job.id),
    )
    jobs.tell(job.id, "saving")
    made.save(unfinished(settings, job))


def _reporting(jobs: Jobs, number: int) -> Callable[[float | None], None]:
    last = [0.0]

    def report(share: float | None) -> None:
        if time.monotonic() - last[0] > _SECONDS_BETWEEN_REPORTS:
            last[0] = time.monotonic()
            jobs.tell(number, "counting", share)

    return report


def _words(problem: BaseException) -> str:
    """Return what a curator may read: of faults their kind alone, since their words may quote counts."""
    if isinstance(problem, VeilcubeError):
        notes = [note for note in getattr(problem, "__notes__", ()) if isinstance(note, PublicNote)]
        return "; ".join([" ".join(str(problem).split()), *notes])
    return f"a fault in the program ({type(problem).__name__}) stopped it"


def _is_ours(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
