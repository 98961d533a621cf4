"""Run the application until it is told to end."""

import socket
import sys

import uvicorn

from veilcube.service.app.factory import create_app
from veilcube.service.base import LOOPBACK, ServiceError, Settings
from veilcube.service.web import Service

FIRST = "first"
_WAITING = 1024


def serve(settings: Settings) -> None:
    """Serve a folder; the first time a curator's key is made, and printed once."""
    app = create_app(settings)
    service: Service = app.state.service
    with _listening(settings) as listener:
        host, port = listener.getsockname()[:2]
        _greet(service, f"http://{host}:{port}")
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            proxy_headers=settings.behind_proxy,
            forwarded_allow_ips=LOOPBACK,
            server_header=False,
            limit_concurrency=1000,
            timeout_keep_alive=30,
        )
        uvicorn.Server(config).run(sockets=[listener])


def _greet(service: Service, address: str) -> None:
    if not service.keys.all():
        now = service.now()
        made = service.keys.make(FIRST, "curator", now, "nobody")
        service.audit.note(now, "nobody", "none", "first start", {"id": made.stored.id})
        sys.stdout.write(f"curator's key, shown this once: {made.text}\n")
    sys.stdout.write(f"veilcube serves {service.settings.folder} at {address}\n")
    sys.stdout.flush()


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(_WAITING)  # from here on connections wait, also while the application starts
    except OSError as problem:
        listener.close()
        raise ServiceError(
            f"nothing can listen at {settings.host}:{settings.port} ({problem.strerror}); choose another --port"
        ) from problem
    return listener
