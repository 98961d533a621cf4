"""Every registered mechanism, on every small table.

What is proved in docs/proofs/identity.md, docs/proofs/linear.md and docs/proofs/wavelets.md is tested here.
"""

import json

import numpy as np
import pytest

from conformance.checks import (
    ZeroNoise,
    check_drawn_noise,
    check_event_matches_declared_noise,
    check_exact_log_ratio,
    check_sensitivity,
    check_sensitivity_l2,
    measure,
    plan_of,
)
from conformance.members import ADAPTIVE, MECHANISMS, MechanismMember
from conformance.small_tables import SCHEMAS, cube_of, small_tables
from veilcube.curator.ledger import Receipt
from veilcube.errors import LedgerError, PrivacyError
from veilcube.operators import read_operator
from veilcube.privacy import PrivacyUnit

ROW = PrivacyUnit.row()
PERSON = PrivacyUnit.person("patient_id", 2)
RELATIONS = [("add-remove", ROW), ("replace", ROW), ("add-remove", PERSON), ("replace", PERSON)]

each_mechanism = pytest.mark.parametrize("member", MECHANISMS, ids=lambda member: member.name)
# What holds however often a mechanism publishes; the rest of what adaptive ones promise is in the file for them.
every_mechanism = pytest.mark.parametrize("member", [*MECHANISMS, *ADAPTIVE], ids=lambda member: member.name)
each_relation = pytest.mark.parametrize(
    ("neighbours", "unit"), RELATIONS, ids=lambda value: getattr(value, "kind", value)
)


@each_mechanism
@each_relation
def test_declared_sensitivity_is_the_largest_change_between_neighbours(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit
) -> None:
    check_sensitivity(member, neighbours, unit)


@each_mechanism
@each_relation
def test_declared_l2_sensitivity_is_the_largest_change_between_neighbours(
    member: MechanismMember, neighbours: str, unit: PrivacyUnit
) -> None:
    check_sensitivity_l2(member, neighbours, unit)


@each_mechanism
@each_relation
@pytest.mark.parametrize("epsilon", ["1", "1/10", "2/3", "7/2"])
def test_exact_output_distributions_of_neighbours_stay_within_epsilon(
    member: MechanismMember, epsilon: str, neighbours: str, unit: PrivacyUnit
) -> None:
    check_exact_log_ratio(member, epsilon, neighbours, unit)


@each_mechanism
@each_relation
def test_event_states_the_noise_that_is_drawn(member: MechanismMember, neighbours: str, unit: PrivacyUnit) -> None:
    check_event_matches_declared_noise(member, neighbours, unit)


@each_mechanism
def test_noise_follows_the_declared_law(member: MechanismMember) -> None:
    check_drawn_noise(member, seed=11)


@each_mechanism
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: "x".join(schema.names))
def test_measurements_recover_the_counts_when_there_is_no_noise(member: MechanismMember, schema: object) -> None:
    chosen = plan_of(member, schema, "1", "add-remove", ROW)
    for records in small_tables():
        cube = cube_of(schema, records, ROW)
        (measured,) = measure(member, cube, chosen, ZeroNoise())
        np.testing.assert_allclose(measured.operator.solve(measured.values), cube.exact_counts, atol=1e-9)


@every_mechanism
def test_what_was_measured_can_be_read_back_from_plain_data(member: MechanismMember) -> None:
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, "1", "add-remove", ROW)
        for part in measure(member, cube_of(schema, (0, 1, 1), ROW), chosen, ZeroNoise()):
            # A kind that is not known has no reader in operators/product.py (an axis) or operators/reading.py.
            again = read_operator(json.loads(json.dumps(part.operator.to_dict()))).with_arrays(part.operator.arrays())
            assert again.to_dict() == part.operator.to_dict()
            assert again.measurement_shape == part.operator.measurement_shape


@every_mechanism
def test_neither_cube_nor_measurement_can_be_changed(member: MechanismMember) -> None:
    schema = SCHEMAS[0]
    chosen = plan_of(member, schema, "1", "add-remove", ROW)
    cube = cube_of(schema, (0, 1, 1), ROW)
    before = cube.exact_counts.copy()
    measured = measure(member, cube, chosen, ZeroNoise())
    np.testing.assert_array_equal(cube.exact_counts, before)
    for array in (cube.exact_counts, *(part.values for part in measured)):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@every_mechanism
def test_a_receipt_pays_once(member: MechanismMember) -> None:
    chosen = plan_of(member, SCHEMAS[0], "1", "add-remove", ROW)
    cube = cube_of(SCHEMAS[0], (2,), ROW)
    receipt = Receipt.uncharged(member.mechanism.claim(chosen))
    member.mechanism.measure(cube, chosen, receipt, ZeroNoise())
    sampler = ZeroNoise()
    with pytest.raises(LedgerError, match="used up"):
        member.mechanism.measure(cube, chosen, receipt, sampler)
    assert not sampler.draws


@every_mechanism
def test_a_cheaper_receipt_does_not_pay(member: MechanismMember) -> None:
    cheap = plan_of(member, SCHEMAS[0], "1/10", "add-remove", ROW)
    dear = plan_of(member, SCHEMAS[0], "1", "add-remove", ROW)
    sampler = ZeroNoise()
    with pytest.raises(PrivacyError, match="another measurement"):
        member.mechanism.measure(
            cube_of(SCHEMAS[0], (2,), ROW), dear, Receipt.uncharged(member.mechanism.claim(cheap)), sampler
        )
    assert not sampler.draws
