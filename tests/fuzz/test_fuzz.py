"""Readers of what others wrote, fed with some hundred odd inputs each, and with all that once broke one.

``make fuzz`` goes on for ten minutes each with inputs that nobody has tried.
"""

import time
from collections.abc import Iterator

import pytest

from fuzz.__main__ import NAMES
from fuzz.engine import SLOWEST, Target, fuzz
from fuzz.targets import targets
from veilcube.errors import QueryError

INPUTS, SECONDS = 400, 20.0


@pytest.fixture(scope="module")
def known() -> Iterator[dict[str, Target]]:
    with targets() as found:
        yield found


def test_every_target_has_its_turn(known: dict[str, Target]) -> None:
    assert tuple(known) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_odd_inputs_are_read_or_refused_in_one_sentence_and_soon(name: str, known: dict[str, Target]) -> None:
    found = fuzz(known[name], SECONDS, seed=1, most=INPUTS)
    assert found.broken == []
    assert found.runs >= len(known[name].seeds)
    if name != "http":  # whose refusals are answers
        assert 0 < found.refused < found.runs


def crash(content: bytes) -> object:
    if len(content) > 3:
        raise KeyError(content)
    return content


def hang(content: bytes) -> object:
    while content:
        time.sleep(0.01)
    return None


def shout(content: bytes) -> object:
    raise QueryError(f"no\n{content!r}")


@pytest.mark.parametrize(("read", "words"), [(crash, "KeyError"), (shout, "one short sentence")])
def test_a_reader_that_breaks_is_found(read: object, words: str) -> None:
    found = fuzz(Target("broken", read, [b"abc", b"abcd"]), 5, seed=1, most=200)  # type: ignore[arg-type]
    assert words in found.broken[0][1]


def test_a_reader_that_hangs_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.engine.SLOWEST", SLOWEST / 20)
    found = fuzz(Target("slow", hang, [b"abc"]), 0, seed=1)
    assert [words for _, words in found.broken] == ["it hangs"]
