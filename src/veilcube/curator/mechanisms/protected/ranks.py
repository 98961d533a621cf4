"""Maxima, minima and k-th ranks of a protected table, and the ends of their intervals, drawn from a public domain.

Claim: a draw is epsilon-differentially private (docs/proofs/rank.md, Theorems 1 and 2) for one row added, removed or
exchanged. A person with at most m rows is at most m such steps, so each step gets epsilon/m; in a part of a partition
an exchanged row may leave one part and enter another, which is two steps. The costs of several draws add up.
"""

from dataclasses import dataclass
from fractions import Fraction

from veilcube.curator.mechanisms.protected.base import Protection
from veilcube.curator.sampling import ROUNDING_GRID, draw_rank
from veilcube.errors import PrivacyError, QueryError
from veilcube.privacy import MOST_ROWS, ChoiceEvent, PrivacyStatement, RankMethod, SequentialEvent, rank_reach
from veilcube.system import Integers

PROOF = "docs/proofs/rank.md#theorem-2"
# The sampler needs a rate of one step of its grid, and a rate is at least a fifth of epsilon.
SMALLEST_EPSILON = Fraction(8, ROUNDING_GRID)


@dataclass(frozen=True)
class RankDraw:
    """One draw: which rank, epsilon for one row, and by which mechanism."""

    rank: int
    epsilon: Fraction
    method: RankMethod


@dataclass(frozen=True)
class RankMechanism:
    """Draws the value of a rank and, with a share of epsilon for them, the ends of its interval."""

    value: RankDraw
    ends: tuple[RankDraw, ...]
    statement: PrivacyStatement

    @classmethod
    def claiming(
        cls,
        rank: int,
        method: RankMethod,
        epsilon: Fraction,
        protection: Protection,
        *,
        share: Fraction,
        values: int,
        confidence: float,
    ) -> "RankMechanism":
        """Return the mechanism that draws a rank from so many values, and an interval's ends for a share of epsilon.

        What cannot be drawn is refused here, before it is paid for.
        """
        each = epsilon / protection.changed_rows
        both = each * share
        if min(each - both, both / 2 if share else each) < SMALLEST_EPSILON:
            raise PrivacyError(
                "epsilon, or its share for an interval, is too small to draw with; use at least 2**-52 for a row of a "
                "unit"
            )
        ends = _ends(rank, both, values, confidence) if share else ()
        first = RankDraw(rank, each - both, method)
        events = tuple(ChoiceEvent(draw.epsilon * protection.changed_rows) for draw in (first, *ends))
        event = SequentialEvent(events) if ends else events[0]
        return cls(first, ends, protection.statement(epsilon, event, PROOF))

    @property
    def size(self) -> int:
        """How many values are drawn."""
        return 1 + len(self.ends)

    def draw(self, climbed: Integers) -> list[int]:
        """Draw the answer from the rows at each value, the first rank last, and its ends from them and public rows."""
        value = draw_rank(climbed, self.value.epsilon, self.value.rank, self.value.method)
        longer = [_with_public_rows(climbed, end.rank) for end in self.ends]
        ends = zip(longer, self.ends, strict=True)
        return [value, *(draw_rank(rows, end.epsilon, end.rank, end.method) for rows, end in ends)]


def _ends(rank: int, epsilon: Fraction, values: int, confidence: float) -> tuple[RankDraw, ...]:
    """Return the draws of an interval's ends for one epsilon.

    An end is drawn for a rank that is g rows off, g one more than a draw misses by at most: it then lies on its side of
    the true value. A rank nearer to the top than g has no upper end but the domain's.
    """
    method, sure = RankMethod.PERMUTE_AND_FLIP, 1 - (1 - confidence) / 2
    off = rank_reach(values, epsilon / 2, sure, method) + 1
    ends: tuple[RankDraw, ...]
    if rank > off:
        ends = (RankDraw(rank + off, epsilon / 2, method), RankDraw(rank - off, epsilon / 2, method))
    else:
        ends = (RankDraw(rank + rank_reach(values, epsilon, confidence, method) + 1, epsilon, method),)
    if ends[0].rank > MOST_ROWS:
        raise QueryError("an end of the interval would be a rank above 2**53; use a larger share, or interval=None")
    return ends


def _with_public_rows(climbed: Integers, rank: int) -> Integers:
    """Return the rows with as many public ones at the lowest value as the rank, so that there is a row of this rank.

    Without them, a rank beyond all rows is drawn from an almost flat law. The same rows more keep neighbours what they
    are. Rows at the lowest value matter only until the rank is reached, so what is missing has the law of all of them.
    """
    longer = climbed.copy()
    longer[0] += max(rank - int(climbed.sum()), 0)
    return longer
