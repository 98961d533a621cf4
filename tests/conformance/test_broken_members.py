"""The suite itself is tested: deliberately broken copies of a mechanism must fail it."""

from dataclasses import dataclass
from fractions import Fraction

import pytest

from conformance.checks import (
    check_drawn_noise,
    check_event_matches_declared_noise,
    check_exact_log_ratio,
    check_sensitivity,
    check_sensitivity_l2,
)
from conformance.members import MechanismMember
from support.tree_strategies import PlainTree
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import IdentityMechanism, LinearMechanism, NoiseSampler
from veilcube.operators import IdentityOperator, NeighbourName, ProductOperator
from veilcube.planner import Identity, Plan
from veilcube.privacy import PrivacyUnit
from veilcube.record import NoisyMeasurement
from veilcube.schema import Schema

ROW = PrivacyUnit.row()


class TooLittleNoise(IdentityMechanism):
    """Draws noise of 95% of the scale that it claims."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        return super().measure(cube, plan, receipt, lambda scale, shape: draw_noise(scale * Fraction(95, 100), shape))


class HalvedSensitivity(IdentityOperator):
    """Understates the change that an exchanged row makes."""

    def sensitivity(self, neighbours: NeighbourName) -> int:
        return max(super().sensitivity(neighbours) // 2, 1)


class HalvedStrategy(Identity):
    def operator(self, schema: Schema) -> IdentityOperator:
        return HalvedSensitivity(schema.shape, schema.names)


class TreeWithL1(ProductOperator):
    """Takes its L1 sensitivity for the squared L2 one."""

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return self.sensitivity(neighbours)


class TreeFivePercentOff(ProductOperator):
    """Understates its squared L2 sensitivity by 5%."""

    def sensitivity_l2_squared(self, neighbours: NeighbourName) -> int:
        return super().sensitivity_l2_squared(neighbours) * 95 // 100


@dataclass(frozen=True)
class BrokenTree(PlainTree):
    kind: type[ProductOperator] = TreeWithL1

    def operator(self, schema: Schema) -> ProductOperator:
        sound = super().operator(schema)
        return self.kind(sound.axes, sound.dimensions)


class Unnoised(IdentityMechanism):
    """Asks for noise and publishes one cell without it."""

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler
    ) -> tuple[NoisyMeasurement, ...]:
        def noise_on_all_but_the_first(scale: Fraction, shape: tuple[int, ...]) -> object:
            drawn = draw_noise(scale, (max(shape[0] - 1, 1), *shape[1:]))
            whole = drawn.repeat(2, axis=0)[: shape[0]].copy()
            whole[0] = 0
            return whole

        return super().measure(cube, plan, receipt, noise_on_all_but_the_first)


LITTLE = MechanismMember("too little noise", Identity(), TooLittleNoise())
HALVED = MechanismMember("halved sensitivity", HalvedStrategy(), IdentityMechanism())
BARE = MechanismMember("one cell without noise", Identity(), Unnoised())


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_noise_five_percent_too_small_fails_the_exact_ratio(neighbours: str) -> None:
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_exact_log_ratio(LITTLE, "1", neighbours, ROW)


def test_noise_five_percent_too_small_fails_the_event_check() -> None:
    with pytest.raises(AssertionError):
        check_event_matches_declared_noise(LITTLE, "add-remove", ROW)


def test_noise_five_percent_too_small_fails_the_statistical_check() -> None:
    with pytest.raises(AssertionError, match="not the noise declared"):
        check_drawn_noise(LITTLE, seed=11)


def test_halved_sensitivity_fails_the_exact_ratio() -> None:
    with pytest.raises(AssertionError, match="exceeds epsilon"):
        check_exact_log_ratio(HALVED, "1", "replace", ROW)


def test_halved_sensitivity_fails_the_sensitivity_check() -> None:
    with pytest.raises(AssertionError, match="declared 1, found 2"):
        check_sensitivity(HALVED, "replace", ROW)


def test_a_value_published_without_noise_fails() -> None:
    with pytest.raises(AssertionError, match="without noise"):
        check_exact_log_ratio(BARE, "1", "add-remove", ROW)


@pytest.mark.parametrize("kind", [TreeWithL1, TreeFivePercentOff])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", [ROW, PrivacyUnit.person("patient_id", 2)], ids=lambda unit: unit.kind)
def test_a_wrong_l2_sensitivity_fails(kind: type[ProductOperator], neighbours: str, unit: PrivacyUnit) -> None:
    member = MechanismMember("wrong in L2", BrokenTree(2, kind), LinearMechanism())
    with pytest.raises(AssertionError, match="in L2"):
        check_sensitivity_l2(member, neighbours, unit)
