"""What the privacy options of a command mean, told in the command line's own words."""

from veilcube.errors import PrivacyError
from veilcube.privacy import PrivacyStatement, show_fraction

LARGEST_REASONABLE_EPSILON = 10
ROWS_NOTE = "Protects rows. If one person may have several rows, use --person COLUMN --max-rows N."


def require_whole_unit(person: str | None, max_rows: int | None) -> None:
    """Refuse half a privacy unit, or a cap below one row, before anything is read."""
    if (person is None) != (max_rows is None):
        raise PrivacyError(
            "--person and --max-rows go together: name the column and how many rows of a person to keep, "
            "or leave out both to protect rows"
        )
    if max_rows is not None and max_rows < 1:
        raise PrivacyError("--max-rows must be a whole number of at least 1")


def note_on(statement: PrivacyStatement) -> str | None:
    """Return what a curator should consider about the unit; it depends on the options alone, never on the table."""
    return ROWS_NOTE if statement.unit.kind == "row" else None


def warning_on(statement: PrivacyStatement) -> str | None:
    """Return a warning if epsilon is too large to promise anything worth having."""
    if statement.epsilon <= LARGEST_REASONABLE_EPSILON:
        return None
    epsilon = show_fraction(statement.epsilon)
    return (
        f"An epsilon of {epsilon} protects hardly anybody: it lets the release change the odds about "
        f"{statement.unit.words} by a factor of up to e^{epsilon}. Around 1 or below is usual."
    )
