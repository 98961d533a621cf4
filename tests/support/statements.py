"""Privacy statements for tests that need one and do not care which."""

from fractions import Fraction

from veilcube.privacy import LaplaceEvent, Neighbours, PrivacyStatement, PrivacyUnit


def laplace_statement(
    epsilon: str | int | Fraction, neighbours: str = "add-remove", unit: PrivacyUnit | None = None
) -> PrivacyStatement:
    exact = Fraction(epsilon)
    event = LaplaceEvent(sensitivity=1, scale=1 / exact)
    return PrivacyStatement(exact, Neighbours(neighbours), unit or PrivacyUnit.row(), event, "a test")
