"""Beside a release, measure how many rows lie beyond its cap: one statement, one charge, two measurements."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from veilcube.curator import Cube, ExcessMechanism, PersonRows, Receipt, RowList, Tally
from veilcube.errors import PrivacyError
from veilcube.planner import Plan
from veilcube.privacy import (
    EpsilonLike,
    PrivacyStatement,
    PrivacyUnit,
    SequentialEvent,
    epsilon_for,
    rho_of,
)
from veilcube.record import DEFAULT_BOUND, LARGEST_BOUND, ExcessBins, MeasuredCap, NoisyMeasurement
from veilcube.session.capping import read_cap_epsilon

Measured = tuple[NoisyMeasurement, ...]


@dataclass(frozen=True)
class CapWish:
    """What a user wants to be measured beyond the cap: nothing where epsilon is None."""

    epsilon: Fraction | None
    most_rows: int | None

    @classmethod
    def read(cls, measure_cap: EpsilonLike | None, most_rows: int | None) -> "CapWish":
        """Return what was asked for."""
        if measure_cap is None and most_rows is not None:
            raise PrivacyError("most_rows goes with measure_cap, the epsilon to measure the rows beyond the cap with")
        return cls(None if measure_cap is None else read_cap_epsilon(measure_cap), most_rows)

    def bins(self, unit: PrivacyUnit) -> ExcessBins | None:
        """Return the bins of what is measured; refuses a unit without a cap. Public facts alone are looked at."""
        if self.epsilon is None:
            return None
        if unit.kind != "person":
            raise PrivacyError("measure_cap measures the rows beyond the cap of each person; give person and max_rows")
        if unit.max_groups:
            raise PrivacyError(
                "measure_cap measures rows beyond max_rows, and max_groups leaves out others that nobody counts; leave "
                "out one of the two"
            )
        most = min(DEFAULT_BOUND * unit.max_rows, LARGEST_BOUND) if self.most_rows is None else self.most_rows
        return ExcessBins(unit.max_rows, most)

    def of_cap(self, counted: Cube | Tally | RowList, chosen: Plan) -> "OfCap":
        """Return what is measured of rows that were counted."""
        bins = self.bins(chosen.unit)
        if bins is None or self.epsilon is None:
            return OfCap(None, None)
        if counted.exact_persons is None:
            raise PrivacyError(
                "the cube was made of counts, which do not tell how many rows a person has; give the table itself, or "
                "what veilcube.count makes of it"
            )
        return OfCap(ExcessMechanism(bins, self.epsilon, chosen.neighbours, chosen.unit), counted.exact_persons)


@dataclass(frozen=True, eq=False)
class OfCap:
    """What is measured beside a release, if anything is."""

    mechanism: ExcessMechanism | None
    persons: PersonRows | None

    def beside(self, claim: PrivacyStatement) -> PrivacyStatement:
        """Return what is promised for a release and this together."""
        if self.mechanism is None:
            return claim
        mine = self.mechanism.claim
        event, proof = SequentialEvent((claim.event, mine.event)), f"{claim.proof} and {mine.proof}"
        if claim.rho is None:
            return replace(claim, epsilon=claim.epsilon + mine.epsilon, event=event, proof=proof)
        rho = claim.rho + rho_of(event) - rho_of(claim.event)
        epsilon = max(claim.epsilon, epsilon_for(rho, claim.delta))
        return replace(claim, epsilon=epsilon, rho=rho, event=event, proof=proof)

    def carry_out(
        self, receipt: Receipt, claim: PrivacyStatement, release: Callable[[Receipt], Measured]
    ) -> tuple[Measured, MeasuredCap | None]:
        """Measure both, each for its part of the receipt."""
        if self.mechanism is None or self.persons is None:
            return release(receipt), None
        of_release, of_cap = receipt.divided(claim, self.mechanism.claim)
        return release(of_release), self.mechanism.measure(self.persons, of_cap)
