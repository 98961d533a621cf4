import pytest

from support.services import Clock
from veilcube.service.access import Keys, Sessions
from veilcube.service.store import Database

HOUR = 3600.0


@pytest.fixture
def rooms(tmp_path):
    database, clock = Database(tmp_path / "service.db"), Clock()
    made = Keys(database).make("mara", "analyst", clock(), "cora")
    return Sessions(database, 12 * HOUR), clock, made.stored.id


def test_a_session_is_found_by_its_token_until_it_ends(rooms) -> None:
    sessions, clock, key = rooms
    token, session = sessions.begin(key, clock())
    assert sessions.find(token, clock()) == session
    assert sessions.find("another", clock()) is None
    assert session.is_own_form(session.csrf)
    assert not session.is_own_form("")
    sessions.end(session.digest)
    assert sessions.find(token, clock()) is None


def test_a_session_ends_after_its_time_and_sooner_if_nobody_uses_it(rooms) -> None:
    sessions, clock, key = rooms
    used, _ = sessions.begin(key, clock())
    unused, _ = sessions.begin(key, clock())
    clock.pass_by(hours=5)
    assert sessions.find(used, clock())
    clock.pass_by(hours=5)
    assert sessions.find(used, clock())
    assert sessions.find(unused, clock()) is None
    clock.pass_by(hours=3)
    assert sessions.find(used, clock()) is None


def test_a_clock_that_was_wrong_makes_no_session_that_outlives_its_time(rooms) -> None:
    sessions, clock, key = rooms
    clock.pass_by(days=400)
    ahead, _ = sessions.begin(key, clock())
    clock.pass_by(days=-400)
    assert sessions.find(ahead, clock()) is None
    clock.pass_by(days=400)
    assert sessions.find(ahead, clock()) is None  # it ended when it was looked at


def test_a_small_step_of_the_clock_ends_no_session(rooms) -> None:
    sessions, clock, key = rooms
    token, _ = sessions.begin(key, clock())
    clock.pass_by(seconds=-200)
    assert sessions.find(token, clock())
