"""Wrong arguments end in our own sentence: every public callable is walked with every wrong value for every argument.

A call may succeed (what is wrong for one argument is right for another) or be refused by a ``VeilcubeError``. Nothing
else: no raw traceback, no warning of a library's, no hang, no memory beyond a limit.
"""

import inspect
import random
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal
from functools import partial
from inspect import BoundArguments, Parameter
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.public_calls import INSTANCES, USES, World, owners, public_callables, valid_arguments
from veilcube.errors import VeilcubeError

SECONDS_PER_CALL = 10
BYTES_FOR_A_CALL = 2 * 2**30
PAIRS_TRIED = 12
FUNCTIONS = ("progress", "part", "merge")
# Dates have no middle, and one attribute has no correlation.
REFUSED_WHATEVER_IS_GIVEN = ("Ordinal of dates.centres", "Ordinal of dates.spans", "Release in steps.correlation")
# Only releases of regions have parts.
REFUSED_WHATEVER_IS_GIVEN += tuple(f"{name}.parts" for name in INSTANCES if name != "Release of regions")


def _list_in_itself() -> list[object]:
    holder: list[object] = []
    holder.append(holder)
    return holder


def _dict_in_itself() -> dict[str, object]:
    holder: dict[str, object] = {}
    holder["x"] = holder
    return holder


# Made anew for each call, so that none sees what another did to them.
WRONG: dict[str, Callable[[], object]] = {
    "none": lambda: None,
    "five": lambda: 5,
    "text": lambda: "x",
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "minus one": lambda: -1,
    "lists in lists": lambda: [[1], [2, [3, "x"]]],
    "list in itself": _list_in_itself,
    "dict in itself": _dict_in_itself,
    "2^70": lambda: 2**70,
    "2^33": lambda: 2**33,
    "1e308": lambda: 1e308,
    "empty list": list,
    "empty dict": dict,
    "empty text": str,
    "empty tuple": tuple,
    "empty set": set,
    "object": object,
    "class": lambda: int,
    "function": lambda: lambda: None,
    "bytes": lambda: b"x",
    "complex": lambda: 1j,
    "decimal nan": lambda: Decimal("nan"),
    "array": lambda: np.array([1.0, np.nan]),
    "table of objects": lambda: np.array([[None, "x"]], dtype=object),
    "nul text": lambda: "x\0y",
    "lone surrogate": lambda: "\ud800",
    "many digits": lambda: "9" * 5000,
    "true": lambda: True,
    "text list": lambda: ["x", "x"],
    "dict of lists": lambda: {"age": [[]]},
    "dict of numbers": lambda: {5: float("nan")},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture
def untouched(tmp_path: Path) -> World:
    """Make a world in which no other test has allowed, charged or written anything: tests run in any order."""
    return World(tmp_path)


class TooSlowError(BaseException):
    """A call took longer than a refusal or a tiny table may."""


@pytest.fixture(autouse=True)
def limits(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bound time and memory, and let files that wrong paths name fall into a folder of the test."""

    def give_up(*_: object) -> None:
        raise TooSlowError

    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    earlier = signal.signal(signal.SIGVTALRM, give_up)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + BYTES_FOR_A_CALL, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGVTALRM, earlier)


@pytest.mark.parametrize("owner", owners())
def test_every_public_callable_has_valid_arguments(untouched: World, owner: str) -> None:
    for name, function in public_callables(untouched, owner).items():
        valid = valid_arguments(untouched, name, function)
        assert valid is not None, f"say in support/public_calls.py what to pass to {name}"
        if name in REFUSED_WHATEVER_IS_GIVEN:
            continue
        result = _call(function, valid)
        USES.get(name, lambda _, made: str(made))(untouched, result)
        if type(result).__module__.startswith("veilcube"):
            walked = {type(untouched.instance(name)) for name in INSTANCES}
            assert type(result) in walked, f"{name} returns a {type(result).__name__}: add one to INSTANCES"


@pytest.mark.parametrize("owner", owners())
def test_wrong_arguments_are_refused_in_our_own_words(world: World, owner: str) -> None:
    faults: list[str] = []
    for name, function in public_callables(world, owner).items():
        use = partial(USES[name], world) if name in USES else str
        for described, arguments in _wrong_calls(function, valid_arguments(world, name, function) or {}):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fault = _fault_of(function, arguments, use)
            strange = [str(warning.message) for warning in caught if warning.category is not UserWarning]
            if fault or strange:
                faults.append(f"{name}({described}): {fault or f'warns: {strange[0]}'}")
    assert not faults, "\n".join(faults)


def _wrong_calls(function: Callable[..., Any], valid: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every argument wrong in every way, and some pairs of arguments wrong together."""
    parameters = [one for one in inspect.signature(function).parameters.values() if not one.name.startswith("_")]
    for parameter in parameters:
        for wrong, make in WRONG.items():
            if wrong == "class" and parameter.name in FUNCTIONS:
                continue  # int can be called; that it fails on what it is given is not ours to say
            for label, arguments in _with_wrong(parameter, make):
                yield f"{label}={wrong}", valid | arguments
            inside = valid.get(parameter.name) if parameter.kind is not Parameter.VAR_KEYWORD else None
            for label, value in _wrong_inside(inside, make):
                yield f"{parameter.name}{label}={wrong}", valid | {parameter.name: value}
    chooser = random.Random(17)
    pairs = list(combinations(parameters, 2))
    for first, second in chooser.sample(pairs, min(PAIRS_TRIED, len(pairs))):
        one, other = chooser.choice(list(WRONG)), chooser.choice(list(WRONG))
        label, arguments = next(_with_wrong(first, WRONG[one]))
        second_label, more = next(_with_wrong(second, WRONG[other]))
        yield f"{label}={one}, {second_label}={other}", valid | arguments | more


def _with_wrong(parameter: Parameter, make: Callable[[], object]) -> Iterator[tuple[str, dict[str, Any]]]:
    if parameter.kind is Parameter.VAR_POSITIONAL:
        yield f"*{parameter.name}", {parameter.name: (make(),)}
        yield f"*{parameter.name} twice", {parameter.name: (make(), make())}
    elif parameter.kind is Parameter.VAR_KEYWORD:
        yield f"**{parameter.name} of age", {parameter.name: {"age": make()}}
        yield f"**{parameter.name} of job", {parameter.name: {"job": make()}}
        yield f"**{parameter.name} of nothing", {parameter.name: {"nothing": make()}}
    else:
        yield parameter.name, {parameter.name: make()}


def _wrong_inside(value: object, make: Callable[[], object]) -> Iterator[tuple[str, object]]:
    """Yield a valid list or mapping with one wrong entry, at its first place or behind the others, at any depth."""
    if isinstance(value, list | tuple) and value:
        kind = type(value)
        yield "[0]", kind([make(), *value[1:]])
        yield "[+]", kind([*value, make()])
        for label, inner in _wrong_inside(value[0], make):
            yield f"[0]{label}", kind([inner, *value[1:]])
    elif isinstance(value, dict) and value:
        key = next(iter(value))
        yield "[key]", value | {key: make()}
        wrong = make()
        if isinstance(wrong, Hashable):
            yield "[wrong key]", value | {wrong: value[key]}
        for label, inner in _wrong_inside(value[key], make):
            yield f"[key]{label}", value | {key: inner}


def _fault_of(function: Callable[..., Any], arguments: dict[str, Any], use: Callable[[Any], object]) -> str | None:
    """Return what is wrong with how a call ends, or the use of what it gives, or None."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PER_CALL)
    try:
        use(_call(function, arguments))
    except VeilcubeError as refusal:
        return None if str(refusal).strip() else "is refused without a word"
    except TooSlowError:
        return f"does not end within {SECONDS_PER_CALL} s"
    except BaseException as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        ours = [frame for frame in traceback.extract_tb(problem.__traceback__) if "/veilcube/" in frame.filename]
        place = ours[-1] if ours else last
        return f"{type(problem).__name__} at {Path(place.filename).name}:{place.lineno}: {str(problem)[:100]!r}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call, and read what the call promises to give later; a refusal of valid arguments is returned."""
    signature = inspect.signature(function)
    bound = BoundArguments(signature, {key: arguments[key] for key in signature.parameters if key in arguments})  # type: ignore[arg-type]
    result = function(*bound.args, **bound.kwargs)
    return list(islice(result, 2)) if isinstance(result, Iterator) else result
