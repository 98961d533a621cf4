"""Plans as files: what was planned comes back, and whatever is not what was saved is refused in one sentence."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import veilcube as vc
from veilcube.errors import CapacityError, PlanError, QueryError
from veilcube.planner import MeasuredOnce
from veilcube.planner.plan_file import _digest
from veilcube.system import memory

PEOPLE = vc.Schema(
    [
        vc.Ordinal("age", 17, 90),
        vc.Nominal("sex", ["Female", "Male"]),
        vc.Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": ["Clerk", "Judge", "Developer"]}),
    ]
)
LINE = vc.Schema([vc.Ordinal("income", 0, 255)])
ASKED = ["age BETWEEN 30 AND 39", "job = 'Judge' OR age >= 65", {"job": "Care", "sex": "Female"}]
STRATEGIES: list[Any] = [
    "auto",
    "identity",
    "tree",
    vc.Tree(branching={"age": 8, "sex": "flat"}, refine=False),
    "wavelet",
    vc.Wavelet(flat=["sex", "job"], threshold=True),
    "adaptive",
    vc.Adaptive(partition="grow", split="9/10", threshold=3),
    "kd tree",
    "marginals",
    vc.Marginals(tables=[("age", "sex", "job")]),
    "matched",
    "grouped tables",
    vc.GroupedTables(full_cells=True),
]
PROMISES: list[dict[str, Any]] = [{"epsilon": "1/3"}, {"epsilon": 1, "delta": 1e-9}, {"rho": "1/10"}, {"error": 40}]


def same(one: vc.Plan, other: vc.Plan) -> bool:
    """Whether two plans measure the same with the same noise, and promise the same."""
    parts = [[(part.to_dict(), noise.to_json()) for part, noise in plan.parts] for plan in (one, other)]
    facts = [(plan.promise, plan.unit, plan.neighbours, plan.event, plan.to_dict()) for plan in (one, other)]
    questions = [plan.workload.digest() for plan in (one, other)]
    return parts[0] == parts[1] and facts[0] == facts[1] and questions[0] == questions[1]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_a_plan_comes_back_as_it_was(strategy: Any, promise: dict[str, Any], tmp_path: Path) -> None:
    workload = vc.Workload(PEOPLE, ASKED, weights=[3, 1, 0.5])
    if strategy == "marginals":
        workload = vc.Workload(PEOPLE, ASKED[:1] + ASKED[2:])
    made = vc.plan(PEOPLE, strategy=strategy, workload=workload, person="who", max_rows=3, **promise)
    assert made.save(tmp_path / "p.plan") == tmp_path / "p.plan"
    assert same(vc.Plan.read(tmp_path / "p.plan"), made)


@pytest.mark.parametrize("strategy", ["auto", "staged tree", "tree", "matched", "adaptive"])
@pytest.mark.parametrize("promise", PROMISES[:3], ids=str)
def test_plans_of_a_line_come_back_too(strategy: str, promise: dict[str, Any], tmp_path: Path) -> None:
    made = vc.plan(LINE, strategy=strategy, neighbours="replace", **promise)
    made.save(tmp_path / "p.plan")
    assert same(vc.Plan.read(tmp_path / "p.plan"), made)


@pytest.mark.parametrize(
    "workload",
    [
        None,
        vc.Workload.prefixes(LINE),
        vc.Workload.marginals(LINE, 1),
        vc.Workload.random_ranges(LINE, 300, seed=7),
        vc.Workload(LINE, ["income < 0", "income = 3 OR income = 9"]),
        vc.Workload.ranges(LINE, [[0], [3]], [[5], [3]], weights=[1, 9]),
    ],
    ids=lambda workload: "own" if workload is None else workload.words,
)
def test_questions_come_back(workload: vc.Workload | None, tmp_path: Path) -> None:
    made = vc.plan(LINE, strategy="identity", workload=workload)
    made.save(tmp_path / "p.plan")
    found = vc.Plan.read(tmp_path / "p.plan").workload
    assert found.digest() == made.workload.digest()
    assert found.words == made.workload.words
    assert found.weights.tolist() == made.workload.weights.tolist()


def saved(path: Path) -> dict[str, Any]:
    vc.plan(PEOPLE, strategy="tree", workload=vc.Workload(PEOPLE, ASKED, weights=[3, 1, 1]), epsilon="1/2").save(path)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the place and the content of everything that a file says."""
    if isinstance(value, Mapping | list) and value:
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in pairs:
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def other_than(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}1" if isinstance(value, str) else 7


def changed(data: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = json.loads(json.dumps(data))
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return found


def test_every_field_that_is_changed_by_hand_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "p.plan"
    data = saved(path)
    places = list(leaves(data))
    assert len(places) > 80
    for place, value in places:
        path.write_text(json.dumps(changed(data, place, other_than(value))))
        with pytest.raises(PlanError) as refused:
            vc.Plan.read(path)
        assert "changed after it was made" in str(refused.value) or "version" in str(refused.value)
    for key in data:
        path.write_text(json.dumps({name: value for name, value in data.items() if name != key}))
        with pytest.raises(PlanError):
            vc.Plan.read(path)


def test_what_is_written_otherwise_but_says_the_same_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.plan"
    data = saved(path)
    path.write_text(json.dumps(dict(reversed(data.items())), indent=None))
    assert vc.Plan.read(path).epsilon == vc.plan(PEOPLE, epsilon="1/2", strategy="tree").epsilon


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("promise", "rho"), "1/2"),
        (("promise", "epsilon"), "100"),
        (("promise", "epsilon"), "1e999999999"),
        (("promise", "delta"), "1/2"),
        (("noise", "scale"), "1"),
        (("family",), "gaussian"),
        (("family",), "cauchy"),
        (("neighbours",), "replace"),
        (("unit", "max_rows"), 5),
        (("strategy", "name"), "identity"),
        (("strategy", "branching", "age"), [8]),
        (("strategy", "surprise"), 1),
        (("questions", "digest"), "00"),
        (("questions", "weights"), [1, 1, 1]),
        (("questions", "queries"), [{"age": [5, 1000]}]),
        (("questions", "queries"), 7),
        (("promised", "expected_error"), 0.001),
        (("promised", "half_width"), 0.001),
        (("promised", "half_width"), "x"),
        (("schema", "attribute"), []),
        (("schema_fingerprint",), "0"),
        (("candidates",), 3),
        (("searched",), None),
    ],
)
def test_a_forged_digest_hides_nothing_that_would_be_measured_otherwise(
    place: tuple[Any, ...], value: Any, tmp_path: Path
) -> None:
    """The digest is no signature: whoever computes it anew must still say what fits together."""
    path = tmp_path / "p.plan"
    forged = changed(saved(path), place, value)
    del forged["digest"]
    path.write_text(json.dumps({**forged, "digest": _digest(forged)}))
    with pytest.raises(PlanError) as refused:
        vc.Plan.read(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"null", b"\xff\xfe", b"PK\x03\x04", b'{"veilcube_plan": 2}']
)
def test_what_is_no_plan_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.plan").write_bytes(content)
    with pytest.raises(PlanError, match="plan"):
        vc.Plan.read(tmp_path / "p.plan")


def test_a_cut_file_is_refused_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "p.plan"
    saved(path)
    whole = path.read_bytes().rstrip()
    for end in range(0, len(whole), 101):
        path.write_bytes(whole[:end])
        with pytest.raises(PlanError):
            vc.Plan.read(path)


def test_files_that_cannot_be_read_or_written_are_told(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot read the plan"):
        vc.Plan.read(tmp_path / "none.plan")
    with pytest.raises(PlanError):
        vc.plan(LINE).save(tmp_path / "none" / "p.plan")
    with pytest.raises(PlanError, match="path of a plan"):
        vc.Plan.read(7)  # type: ignore[arg-type]


class Own(MeasuredOnce):
    """A strategy of a user's own."""

    name = "own"

    def operator(self, schema: vc.Schema) -> Any:
        return vc.Identity().operator(schema)

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name}


def test_a_strategy_of_ones_own_is_planned_but_not_kept(tmp_path: Path) -> None:
    made = vc.plan(LINE, strategy=Own())
    with pytest.raises(PlanError, match="not one of veilcube's"):
        made.save(tmp_path / "p.plan")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_this_machine_cannot_carry_out_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vc.plan(vc.Schema([vc.Ordinal("t", 1, 2**23)]), strategy="identity").save(tmp_path / "p.plan")
    monkeypatch.setattr(memory, "_machine_memory", lambda: 2**26)
    with pytest.raises(CapacityError, match="releasing 8,388,608 cells needs"):
        vc.Plan.read(tmp_path / "p.plan")


def test_questions_of_another_schema_are_not_compared(tmp_path: Path) -> None:
    made = vc.plan(LINE, strategy="identity")
    with pytest.raises(QueryError, match="another schema"):
        made.half_width(vc.Workload(PEOPLE, ASKED))
