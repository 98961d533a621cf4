"""The accountant: what events cost in epsilon, exactly.

Basic composition of pure differential privacy (Dwork, McSherry, Nissim, Smith 2006; McSherry 2009 for the parallel
form). The proofs for the noise that is drawn are in docs/privacy-guarantee.md.
"""

from fractions import Fraction

from veilcube.privacy.event import ChoiceEvent, Event, LaplaceEvent, ParallelEvent, SequentialEvent


def epsilon_of(event: Event) -> Fraction:
    """Return the epsilon that an event spends.

    >>> one = LaplaceEvent(sensitivity=1, scale=Fraction(10))
    >>> epsilon_of(SequentialEvent((one, one))), epsilon_of(ParallelEvent((one, one)))
    (Fraction(1, 5), Fraction(1, 10))
    """
    match event:
        case LaplaceEvent(sensitivity, scale):
            return sensitivity / scale
        case ChoiceEvent(epsilon):
            return epsilon
        case SequentialEvent(events):
            return sum((epsilon_of(inner) for inner in events), Fraction(0))
        case ParallelEvent(events):
            return max((epsilon_of(inner) for inner in events), default=Fraction(0))
