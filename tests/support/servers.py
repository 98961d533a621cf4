"""Real servers on this machine: in a thread of the test, or as a process of their own."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from support.services import ROLES
from veilcube.service import Settings, create_app
from veilcube.service.web import Service

PATIENCE = 120.0


@contextmanager
def in_a_thread(folder: Path, **settings: object) -> Iterator[tuple[str, dict[str, str], Service]]:
    """Serve a folder on loopback; gives the address, a key for each name, and the service."""
    app = create_app(Settings(folder, **({"requests_per_second": 1e6, "burst": 10**6} | settings)))
    service: Service = app.state.service
    keys = {name: service.keys.make(name, role, service.now(), "test").text for name, role in ROLES.items()}
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", keys, service
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


class Server:
    """``veilcube serve`` as a process, to be killed and started again."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.words, self.key = folder, words, ""
        self.start()

    def start(self) -> None:
        """Start it and wait until it says where it is."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "veilcube.cli", "serve", str(self.folder), "--port", "0", *self.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            found = re.search(r"(vc_\S+)", line)
            self.key = found[1] if found else self.key
            if "veilcube serves" in line:
                self.url = line.split()[-1]
                return
        raise AssertionError("".join(said))

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> str:
        """End it politely, and return what else it said."""
        self.process.terminate()
        return self.process.communicate(timeout=PATIENCE)[0]
