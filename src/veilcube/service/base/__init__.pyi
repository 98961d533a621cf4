from .errors import (
    BadRequestError as BadRequestError,
    ConflictError as ConflictError,
    ForbiddenError as ForbiddenError,
    NotFoundError as NotFoundError,
    OverBudgetError as OverBudgetError,
    ServiceError as ServiceError,
    TooLargeError as TooLargeError,
    TooManyError as TooManyError,
    UnauthenticatedError as UnauthenticatedError,
    UnavailableError as UnavailableError,
)
from .names import NAME_PATTERN as NAME_PATTERN, read_name as read_name
from .settings import LOOPBACK as LOOPBACK, Settings as Settings
