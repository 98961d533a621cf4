import pytest

from veilcube.service.access import Limits
from veilcube.service.base import TooManyError


def test_a_bucket_empties_and_fills_at_its_rate_and_is_ones_own() -> None:
    at = [0.0]
    limits = Limits(2.0, 3, clock=lambda: at[0])
    for _ in range(3):
        limits.take("mara")
    with pytest.raises(TooManyError) as refused:
        limits.take("mara")
    assert refused.value.more == {"retry_after": 1}
    limits.take("noor")
    at[0] = 0.5
    limits.take("mara")
    with pytest.raises(TooManyError):
        limits.take("mara")


def test_asking_whether_a_bucket_is_empty_takes_nothing() -> None:
    limits = Limits(1.0, 1, clock=lambda: 0.0)
    limits.require_any("mara")
    limits.take("mara")
    with pytest.raises(TooManyError):
        limits.require_any("mara")


def test_buckets_of_many_strangers_are_forgotten() -> None:
    limits = Limits(1.0, 1, clock=lambda: 0.0)
    for number in range(20_000):
        limits.take(f"address {number}")
    assert len(limits._buckets) <= 10_000
