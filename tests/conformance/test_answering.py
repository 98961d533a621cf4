"""A release, a refined release and models of past answers are asked in the same way, and keep to the same protocol."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.servers import in_a_thread
from veilcube.errors import QueryError
from veilcube.query import Answering

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 7), vc.Nominal("sex", ["Female", "Male"])])
COUNTS = np.arange(16).reshape(8, 2) * 10 + 40
WORKLOAD = vc.Workload(SCHEMA, [{"age": (2, 5)}, {"sex": "Male"}, {"age": [0, 7], "sex": "Female"}])


def released() -> vc.Release:
    return vc.release(vc.Cube(SCHEMA, COUNTS), 2, "identity")


MEMBERS: dict[str, Callable[[], Answering]] = {
    "release": released,
    "release in steps": lambda: vc.release(vc.Cube(SCHEMA, COUNTS), 2, vc.Tree()),
    "refined release": lambda: vc.refine(released(), [f"total = {COUNTS.sum()}"]),
    "kernel PCA": lambda: vc.KernelPCA(alpha=100).fit(released()),
    "maximum entropy": lambda: vc.MaxEntropy().fit(released()),
}


REMOTE = "remote release"


def served(stack: ExitStack, folder: Path) -> Answering:
    """Return a release as a connection to a service gives it."""
    address, keys, service = stack.enter_context(in_a_thread(folder))
    released().save(service.shelf.files.path("made"))
    return stack.enter_context(vc.connect(address, keys["mara"])).open("made")


@pytest.fixture(scope="module", params=[*MEMBERS, REMOTE])
def member(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    with ExitStack() as stack:
        if request.param == REMOTE:
            yield served(stack, tmp_path_factory.mktemp("service"))
        else:
            yield MEMBERS[request.param]()


def test_a_count_is_the_answer_to_a_workload_of_one(member: Answering) -> None:
    answers = member.answer(WORKLOAD, confidence=0.9)
    asked = [member.count(age=(2, 5), confidence=0.9), member.count("sex = 'Male'", confidence=0.9)]
    asked.append(member.count({"age": [0, 7], "sex": "Female"}, confidence=0.9))
    for one, many in zip(asked, answers, strict=True):
        assert (one.value, one.low, one.high) == pytest.approx((many.value, many.low, many.high), rel=0.02)
        assert one.confidence == 0.9


def test_a_marginal_has_an_answer_for_each_combination_of_cells(member: Answering) -> None:
    found = member.marginal("sex", "age")
    assert found.value.shape == (2, 8)
    assert dict(found.axes)["sex"] == ("Female", "Male")
    assert np.abs(found.value - COUNTS.T).max() < 60
    assert found.value[1, 3] == pytest.approx(member.count(age=3, sex="Male").value, abs=1e-6)
    part = member.marginal("age", where={"age": (2, 5), "sex": "Male"})
    assert dict(part.axes) == {"age": ("2", "3", "4", "5")}
    assert part.value == pytest.approx(found.value[1, 2:6], abs=1e-6)


def test_sql_gives_one_answer_or_one_for_each_group(member: Answering) -> None:
    one = member.count("SELECT COUNT(*) FROM t WHERE age >= 4")
    assert one.value == pytest.approx(COUNTS[4:].sum(), rel=0.1)
    groups = member.count("SELECT sex, COUNT(*) FROM t WHERE age >= 4 GROUP BY sex")
    assert groups.value == pytest.approx(member.marginal("sex", where="age >= 4").value)


def test_the_promise_can_be_said_and_goes_with_every_answer(member: Answering) -> None:
    assert member.schema == SCHEMA
    assert "ifferentially private" in str(member.privacy)
    assert member.count(age=1).privacy == member.answer(WORKLOAD).privacy != ""


def test_nobody_has_no_groups_and_what_is_wrong_is_refused(member: Answering) -> None:
    assert member.marginal("age", where="age > 7").value.size == 0
    for wrong in (member.marginal, lambda: member.count({"age": 1}, sex="Male"), lambda: member.count(x=1)):
        with pytest.raises(QueryError):
            wrong()


def test_a_marginal_of_more_groups_than_memory_holds_is_refused_before_it_is_written_out() -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 2**20 - 1), vc.Ordinal("b", 0, 2**20 - 1)])
    past = vc.History(schema, vc.Workload(schema, [{"a": 1}, {}]), [3.0, 90.0], [2.0, 2.0])
    with pytest.raises(QueryError, match="1,099,511,627,776 groups, and at most"):
        vc.KernelPCA(alpha=1).fit(past, total=90).marginal("a", "b")
