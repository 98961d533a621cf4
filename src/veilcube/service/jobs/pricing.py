"""What a release of a dataset would measure, and what exactly its budget would be charged: from public facts alone."""

from fractions import Fraction

from veilcube.curator import Ledger, mechanism_for
from veilcube.planner import DEFAULT_EPSILON, Plan, make_plan
from veilcube.privacy import Currency, Neighbours, PrivacyStatement, Promise, is_pure, show_fraction, write_fraction
from veilcube.query import Workload
from veilcube.service.base import BadRequestError
from veilcube.service.public import PlanWish, plan_facts, planned, read_written
from veilcube.service.tables import Dataset, plain_budget
from veilcube.session import promise_for


def plan_for(ledger: Ledger, dataset: Dataset, wish: PlanWish) -> Plan:
    """Return the plan for a release of a dataset, whose unit and neighbours are its own."""
    own = {"person": dataset.person, "max_rows": dataset.max_rows, "neighbours": Neighbours.read(dataset.neighbours)}
    given = {name: getattr(wish, name) for name in own if name in wish.model_fields_set}
    if any(own[name] != value for name, value in given.items()):
        raise BadRequestError(
            f"'{dataset.name}' was registered with its person, max_rows and neighbours; leave them out of the plan"
        )
    if wish.error is not None:
        return planned(dataset.schema, wish.model_copy(update=own))
    promise = promise_for((ledger, dataset.name), wish.epsilon, wish.delta, wish.rho) or Promise.read(DEFAULT_EPSILON)
    workload = Workload(dataset.schema, [read_written(one) for one in wish.queries]) if wish.queries else None
    return make_plan(
        dataset.schema, promise, wish.strategy, workload, Neighbours.read(dataset.neighbours), dataset.unit
    )


def price_of(ledger: Ledger, dataset: Dataset, chosen: Plan) -> Fraction | None:
    """Return what a plan costs the budget of a dataset; None if that has no price for it."""
    return _price(mechanism_for(chosen).claim(chosen), ledger.currency(dataset.name))


def price_facts(ledger: Ledger, dataset: Dataset, wish: PlanWish) -> dict[str, object]:
    """Return a plan with what will be charged for it, what is left then, and the statement as it will be printed."""
    chosen = plan_for(ledger, dataset, wish)
    claim, budget = mechanism_for(chosen).claim(chosen), ledger.budget(dataset.name)
    price = _price(claim, budget.currency)
    left = None if price is None else budget.left - price
    why = None
    if price is None:
        why = "the budget is in epsilon, in which Gaussian noise has no price; plan without delta and rho"
    elif left is not None and left < 0:
        why = f"only {budget.currency} {show_fraction(budget.left)} is left"
    return {
        "name": dataset.name,
        "plan": plan_facts(chosen, wish),
        "budget": plain_budget(budget),
        "charge": None if price is None else write_fraction(price),
        "currency": str(budget.currency),
        "left_after": None if left is None else write_fraction(left),
        "words": {
            "charge": "" if price is None else f"{budget.currency} {show_fraction(price)}",
            "left_after": "" if left is None else f"{budget.currency} {show_fraction(left)}",
        },
        "why_not": why,
        "statement": claim.charged(f"the budget of '{dataset.name}'").words,
    }


def _price(claim: PrivacyStatement, currency: Currency) -> Fraction | None:
    """Return what a claim costs; None where the budget has no price for it."""
    if currency is Currency.EPSILON and not is_pure(claim.event):
        return None
    return claim.cost(currency)
