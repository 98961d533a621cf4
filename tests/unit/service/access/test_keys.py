import pytest

from support.services import Clock
from veilcube.service.access import Keys
from veilcube.service.base import ConflictError, ServiceError
from veilcube.service.store import Database


@pytest.fixture
def keys(tmp_path):
    return Keys(Database(tmp_path / "service.db"))


def test_a_key_is_found_by_its_text_and_no_other_text_finds_it(keys) -> None:
    now = Clock()()
    made = keys.make("mara", "analyst", now, "cora")
    assert keys.find(made.text, now) == made.stored
    for wrong in (
        "",
        "vc_",
        made.text[:-1],
        made.text[:-1] + "!",
        made.text[:-2] + "AA",
        "vc_" + "a" * 16 + made.text[19:],
    ):
        assert keys.find(wrong, now) is None


def test_a_key_that_was_right_before_still_needs_its_whole_secret(keys) -> None:
    now = Clock()()
    made = keys.make("mara", "analyst", now, "cora")
    other = made.text[:-1] + ("A" if made.text[-1] != "A" else "B")
    assert keys.find(made.text, now) is not None
    assert keys.is_remembered(made.text)
    assert keys.find(other, now) is None


def test_the_file_and_the_repr_hold_no_secret(keys, tmp_path) -> None:
    made = keys.make("mara", "analyst", Clock()(), "cora")
    secret = made.text.rpartition("_")[2]
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert secret.encode() not in everything
    assert secret not in repr(made)
    assert b"$argon2id$" in everything


def test_a_key_that_was_revoked_or_has_expired_opens_nothing_even_if_it_was_right_a_moment_ago(keys) -> None:
    clock = Clock()
    keys.make("cora", "curator", clock(), "nobody")
    made = keys.make("mara", "analyst", clock(), "cora")
    short = keys.make("mara", "analyst", clock(), "cora", expires=clock.at.replace(hour=13))
    assert keys.find(made.text, clock())
    assert keys.find(short.text, clock())
    keys.revoke(made.stored.id, clock())
    clock.pass_by(hours=1)
    assert keys.find(made.text, clock()) is None
    assert keys.find(short.text, clock()) is None


def test_the_last_curators_key_stays(keys) -> None:
    now = Clock()()
    only = keys.make("cora", "curator", now, "nobody")
    with pytest.raises(ConflictError, match="last curator"):
        keys.revoke(only.stored.id, now)
    keys.make("carl", "curator", now, "cora")
    keys.revoke(only.stored.id, now)
    assert keys.find(only.text, now) is None


def test_a_name_has_one_role(keys) -> None:
    keys.make("mara", "analyst", Clock()(), "cora")
    with pytest.raises(ConflictError, match="one role"):
        keys.make("mara", "curator", Clock()(), "cora")
    with pytest.raises(ServiceError, match="name"):
        keys.make("../mara", "analyst", Clock()(), "cora")
