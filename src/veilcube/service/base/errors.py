"""What the service refuses besides what the library refuses: each refusal has a code, a status and one sentence."""

from collections.abc import Mapping

from veilcube.errors import VeilcubeError


class ServiceError(VeilcubeError):
    """A request that the service refuses. ``more`` is told beside the message: plain data, nothing private."""

    status, code = 400, "bad_request"

    def __init__(self, message: str, **more: object) -> None:
        super().__init__(message)
        self.more: Mapping[str, object] = more


class BadRequestError(ServiceError):
    """The request is not well formed."""


class UnauthenticatedError(ServiceError):
    """Nobody knows who is asking."""

    status, code = 401, "unauthenticated"


class ForbiddenError(ServiceError):
    """Whoever is asking may not do this."""

    status, code = 403, "forbidden"


class NotFoundError(ServiceError):
    """There is no such thing, or it is not for whoever is asking: the two are not told apart."""

    status, code = 404, "not_found"


class ConflictError(ServiceError):
    """The request contradicts what is there."""

    status, code = 409, "conflict"


class TooLargeError(ServiceError):
    """The request is larger than the service takes."""

    status, code = 413, "too_large"


class TooManyError(ServiceError):
    """Too many requests in a short time."""

    status, code = 429, "too_many_requests"


class OverBudgetError(ServiceError):
    """The budget, or somebody's share of it, does not allow a charge; nothing was charged."""

    status, code = 409, "budget_exceeded"


class UnavailableError(ServiceError):
    """What was asked for is there and cannot be used now."""

    status, code = 503, "unavailable"
