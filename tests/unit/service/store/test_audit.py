import sqlite3

import pytest

from support.services import Clock
from veilcube.service.store import Audit, Database


@pytest.fixture
def audit(tmp_path):
    log = Audit(Database(tmp_path / "service.db"))
    for number in range(5):
        log.note(Clock()(), "cora", "curator", "make key", {"number": number})
    return log


def test_lines_come_latest_first_and_page_by_page(audit) -> None:
    assert [entry.what["number"] for entry in audit.entries(limit=2)] == [4, 3]
    assert [entry.what["number"] for entry in audit.entries(before=4, limit=2)] == [2, 1]
    assert audit.first_broken() is None


@pytest.mark.parametrize(
    "change", ["UPDATE audit SET who = 'x'", "DELETE FROM audit", "UPDATE datasets SET name = 'x'"]
)
def test_nothing_that_the_service_says_to_its_file_changes_a_line(audit, tmp_path, change) -> None:
    connection = sqlite3.connect(tmp_path / "service.db")
    connection.execute("INSERT INTO datasets VALUES ('a', 's', NULL, 'x', NULL, NULL, 'add-remove', '', '')")
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        connection.execute(change)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET who = 'mara' WHERE id = 3",
        "DELETE FROM audit WHERE id = 3",
        "UPDATE audit SET chain = '' WHERE id = 3",
    ],
)
def test_who_changes_the_file_itself_is_found_out(audit, tmp_path, change) -> None:
    connection = sqlite3.connect(tmp_path / "service.db")
    for trigger in ("audit_UPDATE", "audit_DELETE"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(change)
    connection.commit()
    assert audit.first_broken() == 3
