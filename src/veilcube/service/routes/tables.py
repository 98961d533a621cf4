"""Questions to protected tables: charged to who asks before any noise is drawn, and remembered."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from veilcube.errors import BudgetExceededError, VeilcubeError
from veilcube.privacy import write_fraction
from veilcube.service.access import Caller, Role
from veilcube.service.base import NotFoundError, OverBudgetError
from veilcube.service.routes.manner import Where
from veilcube.service.tables import (
    ANSWERED,
    Asked,
    AskedQuestion,
    Dataset,
    Kind,
    Question,
    Till,
    ask,
    learned,
    plain_shares,
    require_share,
    what_is_left,
    written_at,
)
from veilcube.service.web import (
    AnyCaller,
    Asker,
    Name,
    Service,
    TheService,
    as_plain,
    data_route,
    form_route,
    from_form,
    page,
)

router = APIRouter(tags=["questions to protected tables"])
# A price so small that any answer which was ever stored is as accurate as what it buys.
_NEXT_TO_NOTHING = "1e-9"
QuestionId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The id of a question that was asked.")]
Column = Annotated[str | None, Query(max_length=200, description="The attribute that is asked about.")]
Names = Annotated[list[Annotated[str, Query(max_length=200)]], Query(max_length=64, description="Group by these.")]
_ANSWER = {"value": 812.0, "low": 782.0, "high": 842.0, "confidence": 0.95, "stddev": 14.1, "privacy": "..."}
_EXAMPLE = {
    "id": "0123456789abcdef",
    "state": "answered",
    "dataset": "visits",
    "asked": {"kind": "count"},
    "outcome": {"answer": _ANSWER, "cost": "1/10", "charge": 7},
}


class AskedByForm(Asked, extra="forbid"):
    """A question from a form, which says what kind it is."""

    kind: Annotated[Kind, Field(examples=["count"])] = "count"


@page(router, "/tables", "tables.html", example={"tables": ["visits"]})
def tables(caller: AnyCaller, service: TheService) -> dict[str, object]:
    """List the tables that can be asked."""
    return {"tables": [one.name for one in service.datasets.all()]}


@page(router, "/tables/{name}", "table.html", example={"name": "visits", "forecast": {"words": "..."}})
def table(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    within: Annotated[float, Query(gt=0, le=1e9, description="Forecast for counts within this error.")] = 50.0,
) -> dict[str, object]:
    """Show what a protected table can be asked, what you have left, and what you asked last."""
    found = service.datasets.find(name)
    last = service.questions.latest(None if caller.sees_everything else caller.name, name, 20)
    facts = {"name": name, "schema": found.schema.to_dict(), "unit": found.unit.to_dict()}
    left = what_is_left(service.ledger, found, caller.name, within)
    return facts | {"neighbours": found.neighbours, **left, "questions": [one.to_dict() for one in last]}


@data_route(router, "/tables/{name}/{kind}.json", "POST", example=_EXAMPLE)
def ask_table(name: Name, kind: Kind, asked: Asked, caller: Asker, service: TheService) -> Any:
    """Ask a protected table, for the price that is offered; a stored answer that is as accurate is free.

    The charge is on disk before any noise is drawn. Who loses the connection finds the answer among their questions,
    or sends the same `request` again. A question that does not fit is refused whole.
    """
    found = service.datasets.find(name)
    if caller.role is Role.ANALYST:
        require_share(service.ledger, found, caller.name)
    told = {"kind": kind, **asked.model_dump(by_alias=True, exclude_defaults=True, exclude={"request"}, mode="json")}
    question = service.questions.begin(name, caller.name, asked.request, told, written_at(service.now()))
    with service.tables.turn(found):
        question = service.questions.find(question.id)
        if not question.is_answered:
            question = _answered(service, caller, found, question, asked, kind)
    return question.to_dict()


@page(router, "/tables/{name}/remembered", "answer.html", example={"answer": _ANSWER, "cost": "0"})
def remembered(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    kind: Literal["count", "sum", "mean", "max", "min", "quantile"] = "count",
    where: Where = None,
    column: Column = None,
    by: Names = [],  # noqa: B006 - FastAPI copies it
    quantile: Annotated[float | None, Query(ge=0, le=1)] = None,
    confidence: Annotated[float, Query(gt=0, lt=1)] = 0.95,
) -> dict[str, object]:
    """Return the most accurate answer that anybody was given to this question; costs nothing, and charges nothing."""
    found = service.datasets.find(name)
    asked = Question(where=where, column=column, by=by, quantile=quantile, confidence=confidence)
    offer = Asked.model_validate({**asked.model_dump(exclude_defaults=True), "epsilon": _NEXT_TO_NOTHING})
    till = Till(service.ledger, takes_money=False)
    return {"answer": ask(service.tables.table(found, till, None), kind, offer), "cost": "0"}


@page(router, "/tables/{name}/learned", "answer.html", example={**_ANSWER, "cost": "0"})
def learned_from_history(
    name: Name,
    caller: AnyCaller,
    service: TheService,
    where: Where = None,
    column: Column = None,
    by: Names = [],  # noqa: B006 - FastAPI copies it
) -> dict[str, object]:
    """Estimate a count, or the sum of a column, from all past answers about the table; costs nothing.

    Questions far from all past ones are answered from the prior, so read their intervals with care.
    """
    return learned(service.ledger, service.datasets.find(name), where, column, by)


@page(router, "/questions", "questions.html", example={"questions": [_EXAMPLE]})
def questions(
    caller: AnyCaller,
    service: TheService,
    dataset: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, object]:
    """List your questions to protected tables, the latest first; curators and auditors see everybody's."""
    who = None if caller.sees_everything else caller.name
    return {"questions": [one.to_dict() for one in service.questions.latest(who, dataset, limit)]}


@page(router, "/questions/{id}", "question.html", example=_EXAMPLE)
def question(id: QuestionId, caller: AnyCaller, service: TheService) -> dict[str, object]:
    """Show one question with its answer, also if the connection was lost when it came."""
    found = service.questions.find(id)
    if not caller.sees_everything and found.analyst != caller.name:
        raise NotFoundError("there is no such question")
    return found.to_dict()


@form_route(router, "/tables/{name}/ask")
def ask_by_form(
    name: Name, asked: Annotated[AskedByForm, from_form(AskedByForm)], caller: Asker, service: TheService
) -> str:
    """Ask from a form."""
    plain = Asked.model_validate(asked.model_dump(by_alias=True, exclude_defaults=True, exclude={"kind"}))
    return f"/questions/{ask_table(name, asked.kind, plain, caller, service)['id']}"


def _answered(
    service: Service, caller: Caller, dataset: Dataset, question: AskedQuestion, asked: Asked, kind: Kind
) -> AskedQuestion:
    """Answer a question, and keep the answer, or the refusal, before anybody sees it."""
    if asked.fresh:
        service.questions.pay_once(question)
    till = Till(service.ledger)
    try:
        answer = ask(service.tables.table(dataset, till, caller.name), kind, asked)
    except VeilcubeError as problem:
        refused = _explained(service, caller, dataset, problem)
        service.questions.end(question, 409, {"refused": str(refused)})
        service.note(caller, "ask", "refused", dataset=dataset.name, question=question.id, charge=till.charge)
        raise refused from None
    cost: dict[str, Any] = {"cost": write_fraction(till.cost), "charge": till.charge}
    ended = service.questions.end(question, ANSWERED, {"answer": as_plain(answer), **cost})
    service.note(caller, "ask", dataset=dataset.name, question=question.id, **cost)
    return ended


def _explained(service: Service, caller: Caller, dataset: Dataset, problem: VeilcubeError) -> VeilcubeError:
    """Add to a refusal for lack of budget what is left, who has it, and where answers are free."""
    if not isinstance(problem, BudgetExceededError):
        return problem
    more: dict[str, object] = dict(what_is_left(service.ledger, dataset, caller.name))
    if caller.sees_everything:
        more["shares"] = plain_shares(service.ledger, dataset.name)
    now = service.now()
    curators = sorted({key.name for key in service.keys.all() if key.role == "curator" and key.is_good(now)})
    free = {way: f"/tables/{dataset.name}/{way}.json" for way in ("remembered", "learned")}
    return OverBudgetError(str(problem), **more, ask=curators, free=free)
