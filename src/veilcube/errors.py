"""The exception tree: every refusal a caller may meet, each with one sentence that says what to do.

No message carries a value that was read from a private table: attribute names, public bounds and file names only.
"""

MOST_QUOTED = 60


def quoted(value: object) -> str:
    """Return what a caller wrote as a message quotes it: in one line, not long, and whatever the value is.

    >>> quoted("Nurse"), quoted(10**5000)
    ('Nurse', 'a number of about 5001 digits')
    """
    if isinstance(value, int) and value.bit_length() > 4 * MOST_QUOTED:
        return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
    try:
        text = " ".join(str(value).split())
    except Exception:  # any object may be given, and its text is its own affair
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= MOST_QUOTED else f"{text[: MOST_QUOTED // 2]} ... {text[-MOST_QUOTED // 2 :]}"


class PublicNote(str):
    """What veilcube notes on any exception that passes by (``add_note``): a sentence without private values."""

    __slots__ = ()


class VeilcubeError(Exception):
    """Anything veilcube refuses to do. ``exit_code`` is what the command line returns for it."""

    exit_code = 1


class SchemaError(VeilcubeError):
    """The schema is not well formed, or two schemas do not agree."""

    exit_code = 3


class TableError(VeilcubeError):
    """A private table cannot be read or does not fit its schema. Never quotes a value of the table."""

    exit_code = 4


class QueryError(VeilcubeError):
    """A query names something that the schema does not have, or asks for what is not supported."""

    exit_code = 5


class PrivacyError(VeilcubeError):
    """A privacy parameter makes no sense (epsilon, neighbours, unit, scale)."""

    exit_code = 6


class BudgetExceededError(VeilcubeError):
    """The ledger refused a charge; nothing was charged and no noise was drawn."""

    exit_code = 7


class LedgerError(VeilcubeError):
    """The ledger cannot be used: locked, read-only, from a newer version, or not a ledger."""

    exit_code = 8


class ReleaseFileError(VeilcubeError):
    """A release file is corrupt, truncated, too large, or from a newer version; or it cannot be written."""

    exit_code = 9


class PlanError(VeilcubeError):
    """No plan can do what was asked."""

    exit_code = 10


class CapacityError(VeilcubeError):
    """The work would need more memory than this machine has."""

    exit_code = 11


class AuditError(VeilcubeError):
    """A mechanism breaks its promise, as an audit found, or cannot be audited as asked."""

    exit_code = 12
