"""A service in a process of its own, which tests kill."""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Process:
    """A running ``veilcube serve``."""

    child: subprocess.Popen[str]
    url: str
    key: str | None

    def kill(self) -> None:
        """End it as a power cut does."""
        self.child.send_signal(signal.SIGKILL)
        self.child.wait(60)

    def stop(self) -> int:
        """End it as an operator does, and return its exit code."""
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(60)


def start_service(folder: Path, *options: str, launch: Sequence[str] = ("-m", "veilcube.cli")) -> Process:
    """Start a service at a free port, and wait until it listens; the first start tells its key."""
    command = [sys.executable, *launch, "serve", str(folder), "--port", "0", *options]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    key = None
    for line in child.stdout:
        if found := re.search(r"vc_[a-z2-7]{16}_\S{43}", line):
            key = found[0]
        if found := re.search(r"http://\S+", line):
            return Process(child, found[0], key)
    raise AssertionError("the service ended before it listened")
