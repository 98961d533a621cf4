"""What holds for every test: an interruption interrupts, however the tests were started, and noise is repeatable.

No test keeps fits of models, or reads those of others: what a test finds is made by the code that it tests.
"""

import os
import signal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

import veilcube.curator.sampling.source
from support.repeatable import SEED_VARIABLE, RepeatableKeys

# A shell starts what it runs in the background with interruptions ignored, and every child inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Children inherit it; tests of the folder itself name one of their own.
os.environ["VEILCUBE_CACHE"] = ""

# Another seed tries every test with other noise: one that fails then asks for more than 95% intervals promise.
KEYS = RepeatableKeys(os.environ.get(SEED_VARIABLE, "0"))
veilcube.curator.sampling.source.os = KEYS  # type: ignore[assignment]

# Examples repeat too, and none has a time limit of its own: the first one may load or compile a loop.
settings.register_profile("suite", deadline=None, derandomize=SEED_VARIABLE not in os.environ)
settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    with KEYS.during(collector.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    with KEYS.during(None if item.get_closest_marker("real_entropy") else item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    if fixturedef.scope == "function":
        return (yield)
    # Which test comes first and needs it depends on what else runs.
    with KEYS.during(f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"):
        return (yield)
