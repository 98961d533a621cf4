"""Privacy statements for tests that need one and do not care which."""

from fractions import Fraction

from veilcube.privacy import GaussianEvent, LaplaceEvent, Neighbours, PrivacyStatement, PrivacyUnit, Promise


def laplace_statement(
    epsilon: str | int | Fraction, neighbours: str = "add-remove", unit: PrivacyUnit | None = None
) -> PrivacyStatement:
    exact = Fraction(epsilon)
    event = LaplaceEvent(sensitivity=1, scale=1 / exact)
    return PrivacyStatement(exact, Neighbours(neighbours), unit or PrivacyUnit.row(), event, "a test")


def gaussian_statement(
    rho: str | int | Fraction, neighbours: str = "add-remove", unit: PrivacyUnit | None = None
) -> PrivacyStatement:
    exact = Fraction(rho)
    event = GaussianEvent(sensitivity_squared=1, sigma_squared=1 / (2 * exact))
    promise = Promise.of_rho(exact)
    return PrivacyStatement.keeping(promise, Neighbours(neighbours), unit or PrivacyUnit.row(), event, "a test")
