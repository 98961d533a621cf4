"""Plans as public files: JSON that says all that was chosen, so that a release measures exactly what was planned.

A file ends with a digest of the rest, which tells whether somebody changed it by hand. It is no signature, and no
promise rests on it: a release charges for what its plan measures, whoever wrote that down. What a file says of errors
is computed anew from its strategy when it is read, and must agree.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from math import isclose
from pathlib import Path
from typing import Protocol, TypeAlias

from veilcube.errors import PlanError, ReleaseFileError, VeilcubeError, quoted
from veilcube.laws import Noise
from veilcube.planner.comparison import Candidate
from veilcube.planner.design import FAMILIES, Family, Strategy, default_workload
from veilcube.planner.naming import named_strategy
from veilcube.privacy import Neighbours, PrivacyUnit, Promise, write_fraction
from veilcube.query import Workload
from veilcube.record import dump_json, parse_json, region_from_data, region_to_data
from veilcube.schema import Region, Schema
from veilcube.system import Floats, atomic_file, read_choice, read_path

VERSION = 1
LARGEST_FILE = 2**24
# What was promised is computed in floats, and libraries may order sums otherwise.
ROUNDING = 1e-6
MOST_ERRORS_KEPT = 1000
_KIND, _DIGEST = "veilcube_plan", "digest"
_PLAN_AGAIN = "make it again with 'veilcube plan --out' or plan.save"

Data: TypeAlias = dict[str, object]


class Keepable(Protocol):
    """What of a plan is kept."""

    @property
    def schema(self) -> Schema:
        """The schema that it is for."""

    @property
    def strategy(self) -> Strategy:
        """What is measured."""

    @property
    def promise(self) -> Promise:
        """What is promised."""

    @property
    def neighbours(self) -> Neighbours:
        """Which tables are neighbours."""

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected."""

    @property
    def workload(self) -> Workload:
        """The questions that it was made for."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """What was considered."""

    @property
    def searched(self) -> str:
        """What a search tried."""

    @property
    def family(self) -> Family:
        """The family of noise."""

    @property
    def reason(self) -> str:
        """Why that was taken."""

    @property
    def noise(self) -> Noise:
        """The noise of the operator's measurements."""

    @property
    def expected_error(self) -> float:
        """The error that is promised."""

    def stddev(self, workload: Workload) -> Floats:
        """Return the standard deviation of the answer to each query."""

    def half_width(self, workload: Workload | None = None, confidence: float = 0.95) -> float:
        """Return half the width of an interval."""

    def half_widths(self, workload: Workload | None = None, confidence: float = 0.95) -> Floats:
        """Return half the width of each interval."""


@dataclass(frozen=True)
class PlanDraft:
    """What a file says: what a plan is made of, and what it promised."""

    schema: Schema
    strategy: Strategy
    promise: Promise
    neighbours: Neighbours
    unit: PrivacyUnit
    workload: Workload
    candidates: tuple[Candidate, ...]
    searched: str
    family: Family
    reason: str
    noise: object
    promised: Mapping[str, float]

    def require_kept(self, made: Keepable) -> None:
        """Refuse a file whose promise the plan that was made from it does not keep: another version chose otherwise."""
        found = {"expected_error": made.expected_error, "half_width": made.half_width()}
        is_kept = all(isclose(self.promised[name], found[name], rel_tol=ROUNDING) for name in found)
        if not is_kept or self.noise != made.noise.to_json():
            raise PlanError(
                "the plan was made by a version of veilcube that plans otherwise, so what it promised would not be "
                f"kept; {_PLAN_AGAIN}"
            )


def write_plan(made: Keepable, path: object) -> Path:
    """Write a plan to a file, whole or not at all."""
    target = read_path(path, "the path of a plan", PlanError)
    try:
        data = _to_data(made)
        text = json.dumps({**data, _DIGEST: _digest(data)}, ensure_ascii=False, allow_nan=False, indent=1).encode()
        if len(text) > LARGEST_FILE:
            raise ValueError("it is longer than a plan file may be")
        parse_json(text)
    except (TypeError, ValueError, RecursionError) as problem:
        raise PlanError(
            f"the plan cannot be kept as a file ({problem}); plan for fewer questions, or for random, prefixes or "
            "marginals, which a file names in a word"
        ) from problem
    try:
        with atomic_file(target) as stream:
            stream.write(text + b"\n")
    except ReleaseFileError as problem:
        raise PlanError(str(problem)) from problem
    return target


def read_plan(path: object) -> PlanDraft:
    """Read a plan file, which anybody may have written: nothing but what ``write_plan`` writes is taken."""
    source = read_path(path, "the path of a plan", PlanError)
    data = _parsed(source)
    if data.get(_KIND) != VERSION:
        what = "is no plan" if _KIND not in data else f"is a plan of version {quoted(data[_KIND])}, not {VERSION}"
        raise PlanError(f"{source} {what}; {_PLAN_AGAIN}")
    said = data.pop(_DIGEST, None)
    if said != _digest(data):
        raise PlanError(
            f"{source} was changed after it was made, since its content and its digest differ; {_PLAN_AGAIN} with what "
            "you want"
        )
    try:
        return _from_data(data)
    except (
        VeilcubeError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        ZeroDivisionError,
    ) as problem:
        why = f": {problem}" if isinstance(problem, VeilcubeError) else ""
        raise PlanError(f"{source} is not a well-formed plan{why}; {_PLAN_AGAIN}") from problem


def _parsed(source: Path) -> Data:
    try:
        with source.open("rb") as stream:
            raw = stream.read(LARGEST_FILE + 1)
    except OSError as problem:
        raise PlanError(f"cannot read the plan {source}: {problem.strerror}; check the path") from problem
    try:
        found = parse_json(raw)
    except (ValueError, RecursionError) as problem:
        raise PlanError(f"{source} is no plan, since it is not whole JSON; {_PLAN_AGAIN}") from problem
    return dict(found) if isinstance(found, Mapping) else {}


def _digest(data: Data) -> str:
    """Return the digest of everything else in a file, whatever its spaces and the order of its keys."""
    canonical = json.dumps(data, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{sha256(canonical.encode()).hexdigest()}"


def _to_data(made: Keepable) -> Data:
    return {
        _KIND: VERSION,
        "made_with": f"veilcube {version('veilcube')}",
        "schema": made.schema.to_dict(),
        "schema_fingerprint": made.schema.fingerprint(),
        "unit": made.unit.to_dict(),
        "neighbours": str(made.neighbours),
        "promise": _promise(made.promise),
        "strategy": _settings(made.strategy),
        "family": made.family,
        "noise": made.noise.to_json(),
        "questions": _questions(made),
        "promised": _promised(made),
        "candidates": [
            {"strategy": _settings(one.strategy), "expected_error": one.expected_error, "family": one.family}
            for one in made.candidates
        ],
        "searched": made.searched,
        "reason": made.reason,
    }


def _promise(promise: Promise) -> Data:
    return {
        "epsilon": write_fraction(promise.epsilon),
        "delta": write_fraction(promise.delta),
        "rho": None if promise.rho is None else write_fraction(promise.rho),
        "is_in_rho": promise.is_in_rho,
    }


def _settings(strategy: Strategy) -> Data:
    """Return a strategy as it is made again; refuses one of the caller's own, which no other program knows."""
    plain: Data = json.loads(dump_json(strategy.settings()))
    try:
        again = named_strategy(plain)
    except PlanError:
        again = None
    if again is None or json.loads(dump_json(again.settings())) != plain:
        raise PlanError(
            f"the strategy '{quoted(strategy.name)}' is not one of veilcube's, so a file cannot say how it is made; "
            "pass the plan itself to veilcube.release"
        )
    return plain


def _promised(made: Keepable) -> Data:
    found: Data = {"expected_error": made.expected_error, "confidence": 0.95, "half_width": made.half_width()}
    if made.workload.recipe is None and len(made.workload) <= MOST_ERRORS_KEPT:
        found["stddevs"] = made.stddev(made.workload).tolist()
        found["half_widths"] = made.half_widths().tolist()
    return found


def _questions(made: Keepable) -> Data:
    """Return the questions: in a word where one makes them again, else one by one, as runs of cells."""
    asked = made.workload
    found: Data = {"words": asked.words, _DIGEST: asked.digest().hex()}
    if not asked.is_weighted and asked.recipe is not None:
        return found | {"recipe": list(asked.recipe)}
    weights: Data = {} if asked.given_weights is None else {"weights": asked.given_weights.tolist()}
    return found | {"queries": [_query(asked, row) for row in range(len(asked))]} | weights


def _query(asked: Workload, row: int) -> object:
    """Return a block of cells as the first and last cell on each attribute that it narrows; else its boxes."""
    if row in asked.regions:
        return region_to_data(asked.schema, asked.regions[row])
    ends = zip(asked.schema, asked.low[row].tolist(), asked.high[row].tolist(), strict=True)
    return {one.name: [low, high] for one, low, high in ends if (low, high) != (0, one.size - 1)}


def _from_data(data: Data) -> PlanDraft:
    schema = Schema.from_dict(_mapping(data["schema"]))
    if schema.fingerprint() != data["schema_fingerprint"]:
        raise PlanError("its schema has another fingerprint than it says")
    strategy = _strategy(data["strategy"])
    return PlanDraft(
        schema=schema,
        strategy=strategy,
        promise=_read_promise(_mapping(data["promise"])),
        neighbours=Neighbours.read(_text(data["neighbours"])),
        unit=PrivacyUnit.from_dict(_mapping(data["unit"])),
        workload=_workload(schema, strategy, _mapping(data["questions"])),
        candidates=tuple(_candidate(_mapping(one)) for one in _list(data["candidates"])),
        searched=_text(data["searched"]),
        family=read_choice(data["family"], "the family of noise", FAMILIES, PlanError),  # type: ignore[arg-type]
        reason=_text(data["reason"]),
        noise=data["noise"],
        promised={name: _number(_mapping(data["promised"])[name]) for name in ("expected_error", "half_width")},
    )


def _read_promise(data: Mapping[str, object]) -> Promise:
    """Return the promise that a user would have made; refuses one whose numbers do not belong together."""
    epsilon, delta, rho = (None if data[name] is None else _text(data[name]) for name in ("epsilon", "delta", "rho"))
    if rho is None:
        possible = [Promise.read(epsilon)]
    elif data["is_in_rho"] is True:
        possible = [Promise.read(rho=rho), Promise.read(epsilon, delta).priced_in_rho()]
    else:
        possible = [Promise.read(epsilon, delta)]
    for one in possible:
        if _promise(one) == data:
            return one
    raise PlanError("its epsilon, delta and rho do not belong together")


def _strategy(data: object) -> Strategy:
    found = named_strategy(_mapping(data))
    if found is None:
        raise PlanError("its strategy is left open")
    return found


def _candidate(data: Mapping[str, object]) -> Candidate:
    error, family = data["expected_error"], read_choice(data["family"], "the family of noise", FAMILIES, PlanError)
    return Candidate(_strategy(data["strategy"]), _number(error), family)  # type: ignore[arg-type]


def _workload(schema: Schema, strategy: Strategy, data: Mapping[str, object]) -> Workload:
    found = _remade(schema, strategy, data)
    if found.digest().hex() != data[_DIGEST]:
        raise PlanError("its questions are drawn otherwise by this version of veilcube or numpy")
    return found


def _remade(schema: Schema, strategy: Strategy, data: Mapping[str, object]) -> Workload:
    match data.get("recipe"):
        case ["ranges"]:
            return default_workload(schema)
        case ["cells of tables"]:
            return strategy.natural_workload(schema)
        case ["prefixes"]:
            return Workload.prefixes(schema)
        case ["marginals", int(k)]:
            return Workload.marginals(schema, k)
        case ["random ranges", int(n), int(seed)]:
            return Workload.random_ranges(schema, n, seed)
    regions = [_region(schema, query) for query in _list(data["queries"])]
    weights = _list(data["weights"]) if "weights" in data else None
    return Workload(schema, regions, weights)  # type: ignore[arg-type]


def _region(schema: Schema, query: object) -> Region:
    if isinstance(query, Mapping):
        return region_from_data(schema, [{name: [ends] for name, ends in query.items()}])
    return region_from_data(schema, query)


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError("a mapping was expected")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("a list was expected")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number was expected")
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was expected")
    return value
