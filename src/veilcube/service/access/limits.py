"""How often somebody may ask: a bucket of tokens for each key, or address, that fills at a steady rate."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from veilcube.service.base import TooManyError

_MOST_KNOWN = 10_000


class Limits:
    """Buckets of one size; those that were not used for longest are forgotten."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._turn = threading.Lock()

    def take(self, who: str, tokens: float = 1.0) -> None:
        """Take tokens out of somebody's bucket; refuses if there are too few."""
        with self._turn:
            at = self._clock()
            left = self._left(who, at)
            if left >= tokens:
                left -= tokens
                refused = False
            else:
                refused = True
            self._buckets[who] = (left, at)
            self._buckets.move_to_end(who)
            if len(self._buckets) > _MOST_KNOWN:
                self._buckets.popitem(last=False)
        if refused:
            wait = max(1, round((tokens - left) / self._rate + 0.5))
            raise TooManyError(f"too many requests; wait {wait} s and ask again, or ask many at once", retry_after=wait)

    def require_any(self, who: str) -> None:
        """Refuse somebody whose bucket is empty, and take nothing."""
        with self._turn:
            left = self._left(who, self._clock())
        if left < 1:
            wait = max(1, round((1 - left) / self._rate + 0.5))
            raise TooManyError(f"too many wrong keys from this address; wait {wait} s", retry_after=wait)

    def _left(self, who: str, at: float) -> float:
        left, since = self._buckets.get(who, (self._burst, at))
        return min(self._burst, left + max(0.0, at - since) * self._rate)
