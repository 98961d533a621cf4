"""What every request and response passes: a limit on bodies, headers for browsers, and faults that tell nothing.

These are plain ASGI applications around the service, so that streams stay streams.
"""

import logging
import traceback
from secrets import token_hex

from anyio import fail_after
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from veilcube.service.base import BadRequestError, ServiceError, TooLargeError
from veilcube.service.web.answers import problem_json

_log = logging.getLogger("veilcube.service")
_SLOWEST_BODY = 30.0
_PLACES = 6
# Everything is served from here; Vega draws by its interpreter, so nothing needs eval.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; manifest-src 'self'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class HeaderGuard:
    """Adds the headers that keep a browser from doing what a page should not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response with headers."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith(("/static/", "/assets/")):
                    headers.setdefault("Cache-Control", "no-store")
                if scope.get("scheme") == "https":
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class BodyGuard:
    """Reads the body of a request, up to a limit, before anything looks at it."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or refuse it."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        try:
            with fail_after(_SLOWEST_BODY):
                body = await self._read(scope, receive)
        except TimeoutError:
            await problem_json(BadRequestError("the body took too long to arrive; send it again"))(scope, receive, send)
            return
        except ServiceError as problem:
            await problem_json(problem)(scope, receive, send)
            return
        if body is None:
            return
        await self._app(scope, _replayed(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        too_large = TooLargeError(f"a body has at most {self._largest:,} bytes; ask in several requests")
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if not told.isdigit() or int(told) > self._largest:
            raise too_large
        parts: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            if sum(map(len, parts)) > self._largest:
                raise too_large
            if not message.get("more_body", False):
                return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


class FaultGuard:
    """Turns a fault of the program into an error that tells nothing but a number, which the operator's log has too.

    The words of an exception may quote private values, so the log gets its kind and its places in the code alone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        begun = False

        async def noticed(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noticed)
        except Exception as problem:
            number = token_hex(4)
            places = "; ".join(
                f"{at.filename}:{at.lineno}" for at in traceback.extract_tb(problem.__traceback__)[-_PLACES:]
            )
            _log.error("fault %s: %s at %s", number, type(problem).__name__, places)
            if begun or scope["type"] != "http":
                return
            told = FaultError(f"a fault in the program stopped this; the operator's log has it as {number}")
            await problem_json(told)(scope, receive, send)


class FaultError(ServiceError):
    """Something that the program did not expect."""

    status, code = 500, "fault"
