"""The noise of a test is the same in every run, and that of a child process or a test that asks for it is not."""

import os

import pytest

import veilcube.curator.sampling.source
from support.repeatable import SEED_VARIABLE, RepeatableKeys
from veilcube.curator.sampling import discrete_laplace


def test_a_tape_repeats_itself_and_no_other() -> None:
    keys, again = RepeatableKeys("0"), RepeatableKeys("0")
    with keys.during("one"), again.during("one"):
        first = [keys.urandom(32), keys.urandom(32)]
        assert first == [again.urandom(32), again.urandom(32)]
    with keys.during("other"):
        assert keys.urandom(32) not in first
    another = RepeatableKeys("1")
    with another.during("one"):
        assert another.urandom(32) not in first


@pytest.fixture(scope="module")
def of_the_module() -> list[int]:
    return discrete_laplace(2**40, 3).tolist()


@pytest.mark.parametrize("which", ["tests", "module"])
def test_noise_is_that_of_the_context_alone(
    which: str, of_the_module: list[int], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = discrete_laplace(2**40, 3).tolist() if which == "tests" else of_the_module
    here = request.node.nodeid if which == "tests" else f"{request.node.parent.nodeid}::of_the_module[0]"
    keys = RepeatableKeys(os.environ.get(SEED_VARIABLE, "0"))
    monkeypatch.setattr(veilcube.curator.sampling.source, "os", keys)
    with keys.during(here):
        assert discrete_laplace(2**40, 3).tolist() == drawn


@pytest.mark.real_entropy
def test_a_test_may_ask_for_the_entropy_of_the_system(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = RepeatableKeys(os.environ.get(SEED_VARIABLE, "0"))
    drawn = [discrete_laplace(2**40, 3).tolist() for _ in range(2)]
    monkeypatch.setattr(veilcube.curator.sampling.source, "os", keys)
    with keys.during(request.node.nodeid):
        assert discrete_laplace(2**40, 3).tolist() not in drawn
