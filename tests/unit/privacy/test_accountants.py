"""Gaussian events, and what both accountants charge for events: exact, and refusing what makes no sense."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from veilcube.errors import PrivacyError
from veilcube.privacy import (
    ChoiceEvent,
    Currency,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NoiseKey,
    ParallelEvent,
    SequentialEvent,
    epsilon_of,
    is_pure,
    noise_events,
    read_event,
    rho_of,
)

TENTH = LaplaceEvent(1, Fraction(10))
CHOICE = ChoiceEvent(Fraction(1, 5))
# Costs 1/25.
GAUSSIAN = GaussianEvent(4, Fraction(50))


def test_a_gaussian_event_comes_back_from_plain_data() -> None:
    event = SequentialEvent((GAUSSIAN, ParallelEvent((TENTH, GaussianEvent(2**124, Fraction(2**80, 3)), CHOICE))))
    assert read_event(event.to_dict()) == event
    assert GAUSSIAN.to_dict() == {"kind": "gaussian", "sensitivity_squared": 4, "sigma_squared": "50"}


@pytest.mark.parametrize(
    "changed",
    [{"sensitivity_squared": 0}, {"sensitivity_squared": -4}, {"sensitivity_squared": 2**124 + 1},
     {"sensitivity_squared": "4"}, {"sensitivity_squared": 4.0}, {"sensitivity_squared": True},
     {"sensitivity_squared": None}, {"sigma_squared": "0"}, {"sigma_squared": "-1"}, {"sigma_squared": 50},
     {"sigma_squared": 0.5}, {"sigma_squared": "1/0"}, {"sigma_squared": "nan"}, {"sigma_squared": "1e30000000"},
     {"sigma_squared": "9" * 400}, {"sigma_squared": None}, {"kind": "gauss"}, {"kind": None}],
    ids=str,
)  # fmt: skip
def test_a_gaussian_event_that_is_not_well_formed_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(PrivacyError):
        read_event(GAUSSIAN.to_dict() | changed)


@pytest.mark.parametrize("missing", ["kind", "sensitivity_squared", "sigma_squared"])
def test_a_gaussian_event_with_a_part_missing_is_refused(missing: str) -> None:
    with pytest.raises(PrivacyError):
        read_event({name: value for name, value in GAUSSIAN.to_dict().items() if name != missing})


def test_many_gaussian_events_have_a_bounded_number_of_digits() -> None:
    long = GaussianEvent(1, Fraction(10**330 + 1, 10**329))
    with pytest.raises(PrivacyError, match="too many digits"):
        read_event(SequentialEvent((long,) * 400).to_dict())
    assert len(read_event(SequentialEvent((GAUSSIAN,) * 999).to_dict()).events) == 999


@pytest.mark.parametrize(
    "arguments", [(0, Fraction(1)), (2**124 + 1, Fraction(1)), (1, Fraction(0)), (1, Fraction(-1))]
)
def test_a_gaussian_event_has_bounds(arguments: tuple[int, Fraction]) -> None:
    with pytest.raises(PrivacyError, match="squared sensitivity from 1"):
        GaussianEvent(*arguments)


def test_every_noise_of_an_event_is_found_and_choices_are_none() -> None:
    event = SequentialEvent((GAUSSIAN, ParallelEvent((CHOICE, SequentialEvent((TENTH, GAUSSIAN))))))
    assert [one.noise for one in noise_events(event)] == [
        NoiseKey("gaussian", Fraction(50), 4),
        NoiseKey("laplace", Fraction(10), 1),
        NoiseKey("gaussian", Fraction(50), 4),
    ]


def test_gaussian_noise_and_choices_add_up_in_rho() -> None:
    assert rho_of(GAUSSIAN) == Fraction(1, 25)
    assert rho_of(CHOICE) == Fraction(1, 50)
    assert rho_of(SequentialEvent((GAUSSIAN, CHOICE, GAUSSIAN, CHOICE))) == Fraction(3, 25)
    assert rho_of(SequentialEvent(())) == rho_of(ParallelEvent(())) == 0


def test_epsilons_of_laplace_noise_add_up_before_they_are_squared() -> None:
    assert rho_of(TENTH) == Fraction(1, 200)
    assert rho_of(SequentialEvent((TENTH, TENTH))) == Fraction(4, 200)
    assert rho_of(SequentialEvent((TENTH, GAUSSIAN, SequentialEvent((TENTH, TENTH))))) == Fraction(9, 200) + rho_of(
        GAUSSIAN
    )


def test_in_parallel_the_dearest_of_either_kind_counts() -> None:
    assert rho_of(ParallelEvent((GAUSSIAN, GAUSSIAN, CHOICE))) == rho_of(GAUSSIAN)
    both = ParallelEvent((GAUSSIAN, TENTH))
    # A unit lies in one part and meets one of them; but after more of either kind the other could be dearer.
    assert max(rho_of(GAUSSIAN), rho_of(TENTH)) <= rho_of(both) == rho_of(GAUSSIAN) + rho_of(TENTH)
    assert rho_of(SequentialEvent((TENTH, both))) == Fraction(4, 200) + rho_of(GAUSSIAN)


def paths(event: Event) -> list[list[Event]]:
    """List what units may meet: of events side by side one, of events one after another all."""
    if isinstance(event, ParallelEvent):
        return [path for inner in event.events for path in paths(inner)] or [[]]
    if isinstance(event, SequentialEvent):
        return [[one for path in chosen for one in path] for chosen in product(*map(paths, event.events))]
    return [[event]]


def brute_force_rho(event: Event) -> Fraction:
    """Return the largest cost of a path: all its Laplace noise as one measurement, and the rest one by one."""

    def cost(path: list[Event]) -> Fraction:
        laplace = sum((one.sensitivity / one.scale for one in path if isinstance(one, LaplaceEvent)), Fraction(0))
        choices = sum((one.epsilon**2 / 2 for one in path if isinstance(one, ChoiceEvent)), Fraction(0))
        gaussian = (one.sensitivity_squared / one.sigma_squared for one in path if isinstance(one, GaussianEvent))
        return laplace**2 / 2 + choices + sum(gaussian, Fraction(0)) / 2

    return max(map(cost, paths(event)))


small = st.integers(1, 9)
laplace = st.builds(lambda d, s: LaplaceEvent(d, Fraction(s, 3)), small, small)
gaussian = st.builds(lambda d, s: GaussianEvent(d, Fraction(s, 3)), small, small)
leaves = laplace | gaussian | st.builds(lambda n: ChoiceEvent(Fraction(n, 7)), small)


def nested(inner: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    parts = st.lists(inner, max_size=3).map(tuple)
    return st.builds(SequentialEvent, parts) | st.builds(ParallelEvent, parts)


@settings(max_examples=300)
@given(st.recursive(leaves, nested, max_leaves=8))
def test_rho_is_never_below_the_dearest_path(event: Event) -> None:
    assert rho_of(event) >= brute_force_rho(event)
    assert Currency.RHO.cost_of(event) == rho_of(event)


@pytest.mark.parametrize("leaf", [laplace, gaussian], ids=["laplace", "gaussian"])
def test_rho_is_that_of_the_dearest_path_where_all_noise_is_of_one_kind(leaf: st.SearchStrategy[Event]) -> None:
    @settings(max_examples=150)
    @given(st.recursive(leaf, nested, max_leaves=8))
    def check(event: Event) -> None:
        assert rho_of(event) == brute_force_rho(event)

    check()


@given(st.recursive(leaves, nested, max_leaves=8))
def test_an_event_with_gaussian_noise_has_no_price_in_epsilon(event: Event) -> None:
    has_gaussian = "gaussian" in str(event.to_dict())
    assert is_pure(event) is not has_gaussian
    if has_gaussian:
        with pytest.raises(PrivacyError, match="no price in epsilon alone"):
            Currency.EPSILON.cost_of(event)
    else:
        assert Currency.EPSILON.cost_of(event) == epsilon_of(event)
        assert rho_of(event) <= epsilon_of(event) ** 2 / 2


def test_a_pure_event_costs_no_more_in_rho_than_its_epsilon() -> None:
    beside = ParallelEvent((TENTH, ChoiceEvent(Fraction(1, 10))))
    assert epsilon_of(beside) == Fraction(1, 10)
    assert rho_of(beside) == Fraction(1, 200)


def test_the_currencies_are_read_from_their_words() -> None:
    assert Currency("epsilon") is Currency.EPSILON
    assert Currency("rho") is Currency.RHO
    assert str(Currency.RHO) == "rho"
