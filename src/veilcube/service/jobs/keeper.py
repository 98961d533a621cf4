"""The keeper of jobs: it starts a process for each, some at a time, and tells what became of those that died.

A process may outlive its service, so whether a job is still carried out is told by the lock that its process holds, and
nothing else. A job without one is finished if its release was saved, and otherwise failed, with what it was charged.
"""

import fcntl
import json
import logging
import subprocess
import sys
import threading

from veilcube.curator import Ledger
from veilcube.errors import VeilcubeError
from veilcube.service.base import Settings
from veilcube.service.jobs.queue import Job, Jobs
from veilcube.service.jobs.results import charge_of, lock_of, publish, tidy
from veilcube.service.store import Database

_log = logging.getLogger("veilcube.service")
_WORKER = [sys.executable, "-m", "veilcube.service.jobs.worker"]
_PAUSE = 0.5


class Keeper:
    """Looks after the jobs of a service, in a thread of its own."""

    def __init__(self, settings: Settings, database: Database, ledger: Ledger) -> None:
        self._settings, self._database, self._ledger = settings, database, ledger
        self._jobs = Jobs(database)
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        self._wake, self._over = threading.Event(), False
        self._thread = threading.Thread(target=self._keep, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin to look after jobs."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the jobs now: one was queued."""
        self._wake.set()

    def stop(self) -> None:
        """Start no more jobs; those that run go on, and the next service finds what became of them."""
        self._over = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Tell what became of jobs whose process ended, and start processes for those that wait."""
        ended = [number for number, process in self._started.items() if process.poll() is not None]
        for number in ended:
            del self._started[number]
            self._settle(self._jobs.find(number))
        running = self._jobs.in_state("running")
        for job in running:
            if job.id not in self._started:
                self._settle(job)
        alive = set(self._started) | {job.id for job in self._jobs.in_state("running")}
        for job in self._jobs.in_state("queued"):
            if len(alive) >= self._settings.jobs_at_once:
                return
            if job.id not in alive:
                self._start(job)
                alive.add(job.id)

    def _keep(self) -> None:
        while not self._over:
            try:
                self.look()
            except Exception as problem:  # the keeper outlives a full disk, or a ledger that is locked
                _log.error("the keeper of jobs met a fault: %s", type(problem).__name__)
            self._wake.wait(_PAUSE)
            self._wake.clear()

    def _start(self, job: Job) -> None:
        process = subprocess.Popen(
            _WORKER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._started[job.id] = process
        settings = self._settings
        told = {"folder": str(settings.folder), "ledger": settings.ledger, "sources": dict(settings.sources)}
        if process.stdin is not None:
            with process.stdin as channel:
                channel.write(json.dumps(told | {"job": job.id}).encode())

    def _settle(self, job: Job) -> None:
        """Say what became of a job whose process may be gone; one that lives is left alone."""
        if job.is_over:
            tidy(self._settings, job)
            return
        with lock_of(self._settings, job.id).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
            if self._jobs.find(job.id).is_over:
                return
            try:
                charge = charge_of(self._ledger, self._database.mark, job)
            except VeilcubeError as problem:
                self._jobs.end(job.id, "failed", f"its process ended, and the ledger cannot be asked: {problem}", None)
                return
            try:
                is_published = publish(self._settings, job)
            except (VeilcubeError, OSError) as problem:
                why = str(problem) if isinstance(problem, VeilcubeError) else f"{problem.strerror}"
                self._jobs.end(job.id, "failed", f"its release was saved and not published: {why}", charge)
                return
            if is_published:
                self._jobs.end(job.id, "done", None, charge)
                tidy(self._settings, self._jobs.find(job.id))
                return
            paid = "nothing was charged" if charge is None else f"{charge['words']} was charged, and that stands"
            self._jobs.end(job.id, "failed", f"its process ended before the release was saved; {paid}", charge)
