"""Nobody is left out: a strategy, a mechanism or an estimator of the product that does not register here is found."""

from conformance.members import ADAPTIVE, ESTIMATORS, MECHANISMS
from veilcube.analyst.estimate.registry import ESTIMATORS as OFFERED
from veilcube.curator.mechanisms import registry


def test_every_strategy_and_its_mechanism_is_checked() -> None:
    checked = {(member.strategy.name, type(member.mechanism)) for member in (*MECHANISMS, *ADAPTIVE)}
    assert {(name, type(mechanism)) for name, mechanism in registry._MECHANISMS.items()} <= checked


def test_every_estimator_is_checked() -> None:
    assert {estimator.name for estimator in OFFERED} <= {member.estimator.name for member in ESTIMATORS}
