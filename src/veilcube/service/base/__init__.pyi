from .errors import (
    BadRequestError as BadRequestError,
    ConflictError as ConflictError,
    ForbiddenError as ForbiddenError,
    NotFoundError as NotFoundError,
    ServiceError as ServiceError,
    TooLargeError as TooLargeError,
    TooManyError as TooManyError,
    UnauthenticatedError as UnauthenticatedError,
)
from .names import NAME_PATTERN as NAME_PATTERN, read_name as read_name
from .settings import LOOPBACK as LOOPBACK, Settings as Settings
