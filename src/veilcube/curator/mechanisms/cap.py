"""What is published about a cap: how many persons have how many rows, and how many rows lie beyond ``max_rows``.

Claim: a person with n rows adds 1 to the one bin that holds n (or her n - max_rows rows beyond the cap, at most the
bin's end), and nothing to any other. So whoever comes or goes changes one number, by at most its bin's sensitivity, and
noise of scale sensitivity/ε on every number costs ε; an exchanged person leaves a bin and enters another, for twice the
sensitivity: docs/proofs/cap.md, Theorems 1 and 2. All rows of a person are hidden, those beyond any cap too.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import NoiseSampler, redeem_for
from veilcube.curator.persons import PersonRows
from veilcube.curator.sampling import discrete_laplace
from veilcube.laws import DiscreteLaplace
from veilcube.privacy import LaplaceEvent, Neighbours, PrivacyStatement, PrivacyUnit, scale_for
from veilcube.record import ExcessBins, MeasuredCap, MeasuredPersons, RowBins, changed_bins

PROOF_OF_PERSONS = "docs/proofs/cap.md#theorem-1"
PROOF_OF_EXCESS = "docs/proofs/cap.md#theorem-2"


@dataclass(frozen=True)
class PersonsMechanism:
    """Publishes how many persons have how many rows."""

    bins: RowBins
    epsilon: Fraction
    neighbours: Neighbours
    unit: PrivacyUnit

    @property
    def claim(self) -> PrivacyStatement:
        """The promise, by one event on all bins at once."""
        event = LaplaceEvent(changed_bins(self.neighbours), self._noise.scale)
        return PrivacyStatement(self.epsilon, self.neighbours, self.unit, event, PROOF_OF_PERSONS)

    @property
    def _noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(scale_for(self.epsilon, changed_bins(self.neighbours)))

    def measure(
        self, persons: PersonRows, receipt: Receipt, draw_noise: NoiseSampler = discrete_laplace
    ) -> MeasuredPersons:
        """Return exact integers plus exact integer noise; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim)
        values = draw_noise(self._noise.scale, (len(self.bins.first),))
        values += persons.measured_by(self.bins)
        return MeasuredPersons(self.bins, values, self._noise, receipt.statement)


@dataclass(frozen=True)
class ExcessMechanism:
    """Publishes how many rows lie beyond the cap, bin by bin of persons."""

    bins: ExcessBins
    epsilon: Fraction
    neighbours: Neighbours
    unit: PrivacyUnit

    @property
    def claim(self) -> PrivacyStatement:
        """The promise, by one event for each bin, of which a person meets one."""
        event = self.bins.event(self._noises, self.neighbours)
        return PrivacyStatement(self.epsilon, self.neighbours, self.unit, event, PROOF_OF_EXCESS)

    @property
    def _noises(self) -> tuple[DiscreteLaplace, ...]:
        return self.bins.noises(self.epsilon, self.neighbours)

    def measure(
        self, persons: PersonRows, receipt: Receipt, draw_noise: NoiseSampler = discrete_laplace
    ) -> MeasuredCap:
        """Return exact integers plus exact integer noise; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim)
        values = np.concatenate([draw_noise(noise.scale, (1,)) for noise in self._noises])
        values += persons.measured_by(self.bins)
        return MeasuredCap(self.bins, values, self._noises)
