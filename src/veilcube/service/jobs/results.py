"""Where a job leaves its release, which lock it holds, and which charge in the ledger is its own."""

import os
from collections.abc import Mapping
from pathlib import Path

from veilcube.curator import Ledger
from veilcube.privacy import show_fraction, write_fraction
from veilcube.service.base import ConflictError, Settings
from veilcube.service.jobs.queue import Job


def lock_of(settings: Settings, number: int) -> Path:
    """Return the file that the process of a job keeps locked while it lives."""
    return settings.below("work") / f"job-{number}.lock"


def unfinished(settings: Settings, job: Job) -> Path:
    """Return the file that a release is saved to, whole or not at all, before it is published."""
    return settings.below("work") / f"job-{job.id}.veil"


def published(settings: Settings, job: Job) -> Path:
    """Return the file that a release is published as."""
    return settings.below("releases") / f"{job.result}.veil"


def publish(settings: Settings, job: Job) -> bool:
    """Put a release that was saved among the releases, never over another one; False if none was saved.

    What was saved stays in its place until ``tidy``, for it alone tells that the published release is this job's.
    """
    saved, place = unfinished(settings, job), published(settings, job)
    if not saved.is_file():
        return False
    try:
        if not (place.exists() and place.samefile(saved)):
            os.link(saved, place)
    except FileExistsError:
        raise ConflictError(
            f"another release was published as '{job.result}' meanwhile; this one was saved, and the operator finds "
            f"it as {saved.parent.name}/{saved.name} in the folder of the service"
        ) from None
    return True


def tidy(settings: Settings, job: Job) -> None:
    """Forget what a job leaves behind once it is done; what was saved and not published is kept."""
    lock_of(settings, job.id).unlink(missing_ok=True)
    if job.state == "done":
        unfinished(settings, job).unlink(missing_ok=True)


def note_of(mark: str, job: Job) -> str:
    """Return the note that the ledger keeps beside the charge for a job."""
    return f"job {job.id} of service {mark}"


def charge_of(ledger: Ledger, mark: str, job: Job) -> Mapping[str, object] | None:
    """Return what was charged for a job; None if nothing was."""
    own = [charge for charge in ledger.history(job.dataset) if charge.details.note == note_of(mark, job)]
    if not own:
        return None
    amount, currency = sum((charge.amount for charge in own[1:]), own[0].amount), own[0].currency
    words = f"{currency} {show_fraction(amount)}"
    return {"id": own[0].id, "amount": write_fraction(amount), "currency": str(currency), "words": words}
