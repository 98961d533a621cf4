"""Rows and balances under seals: no flipped bit gives budget away, what is damaged is told, and can be restored."""

import json
import os
import random
import re
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import veilcube as vc
from support.command_line import caller
from support.old_ledgers import old_ledger
from support.statements import gaussian_statement, laplace_statement
from veilcube.curator.ledger import PartOf
from veilcube.errors import BudgetExceededError, LedgerError, VeilcubeError

SPENT = Fraction(9, 10)


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    """A ledger whose dataset has a tenth of its budget left."""
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    ledger.allow("people", "Ada", "3/4")
    for number, amount in enumerate(("1/5", "3/10", "1/4", "3/20")):
        ledger.charge(
            "people", laplace_statement(amount), purpose=f"charge {number}", analyst="Ada" if number else None
        )
    return ledger


def change(ledger: vc.Ledger, *statements: str) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for statement in (*(f"DROP TRIGGER {name}" for (name,) in triggers), *statements):
            connection.execute(statement)
        connection.commit()


# Flipped bits


def gives_nothing_away(ledger: vc.Ledger) -> bool:
    """Whether damage was told; fails if more budget is shown, or a charge goes through that the budget has no room for.

    Damage that nobody meets on the way to a balance is found by ``verify``.
    """
    told = False
    try:
        assert ledger.budget("people").left <= 1 - SPENT
        assert [account.budget.left <= 1 - SPENT for account in ledger.datasets()] in ([True], [])
    except VeilcubeError:
        told = True
    try:
        ledger.charge("people", laplace_statement("3/20"), purpose="more than is left")
    except BudgetExceededError:
        pass
    except VeilcubeError:
        told = True
    else:
        pytest.fail("an overcharge went through")
    try:
        ledger.verify()
    except VeilcubeError:
        told = True
    return told


def test_no_flipped_bit_in_an_amount_shows_more_budget_or_lets_an_overcharge_pass(ledger: vc.Ledger) -> None:
    whole = ledger.path.read_bytes()
    places = [
        place + start
        for text in (b"1/5", b"3/10", b"1/4", b"3/20", b"9/10", b"1/2", b"epsilon", b"people1", b"3/4")
        for place in (found.start() for found in re.finditer(re.escape(text), whole))
        for start in range(len(text))
    ]
    chance = random.Random(24)
    told = 0
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[chance.choice(places)] ^= 1 << chance.randrange(8)
        ledger.path.write_bytes(damaged)
        told += gives_nothing_away(ledger)
    assert told == 200
    ledger.path.write_bytes(whole)
    assert ledger.budget("people").left == 1 - SPENT


def test_no_flipped_bit_anywhere_shows_more_budget_or_lets_an_overcharge_pass(ledger: vc.Ledger) -> None:
    whole = ledger.path.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte]
    chance = random.Random(25)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[chance.choice(used)] ^= 1 << chance.randrange(8)
        ledger.path.write_bytes(damaged)
        gives_nothing_away(ledger)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE accounts SET amount = '2'",
        "UPDATE accounts SET currency = 'rho'",
        "UPDATE accounts SET neighbours = 'replace'",
        "UPDATE charges SET amount = '1/1000' WHERE id = 4",
        "UPDATE charges SET amount = '1/1000' WHERE id = 3",
        "UPDATE chain SET balance = '1/10' WHERE holder LIKE '[\"dataset%' AND number = 4",
        "UPDATE chain SET seal = '00000000000000000000000000000000' WHERE holder LIKE '[\"dataset%'",
        "DELETE FROM chain WHERE holder LIKE '[\"dataset%' AND number = 4",
        "DELETE FROM chain WHERE holder LIKE '[\"dataset%'",
        "DELETE FROM charges WHERE id = 4",
        "DELETE FROM charges WHERE id = 3",
        "UPDATE charges SET dataset = 'others' WHERE id = 4",
        "DELETE FROM accounts",
        "DELETE FROM chain WHERE holder = '[\"key\"]'",
    ],
)
def test_what_would_give_budget_away_is_refused_in_one_sentence_at_the_next_charge(
    ledger: vc.Ledger, tampering: str
) -> None:
    change(ledger, tampering)
    for use in (lambda: ledger.charge("people", laplace_statement("1/20"), purpose="next"), ledger.verify):
        with pytest.raises(LedgerError, match=r"damaged|note beside") as refusal:
            use()
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("tampering", "where"),
    [
        ("UPDATE charges SET amount = '1/1000' WHERE id = 1", "row 1 of charges"),
        ("UPDATE charges SET purpose = 'another' WHERE id = 2", "row 2 of charges"),
        ("UPDATE charges SET analyst = NULL WHERE id = 2", "row 2 of charges"),
        ("UPDATE shares SET amount = '9/10'", "row 1 of shares"),
        ("UPDATE chain SET balance = '1' WHERE number = 1 AND holder LIKE '[\"analyst%'", "row 3 of charges"),
        ("SELECT 1", "the layout"),
        ("INSERT INTO chain SELECT holder, 17, row_id, balance, seal FROM chain WHERE number = 4", "the chain"),
    ],
)
def test_any_change_is_found_by_a_check_of_the_whole_with_its_place(
    ledger: vc.Ledger, tampering: str, where: str
) -> None:
    change(ledger, tampering)
    with pytest.raises(LedgerError, match=rf"is damaged; restore a backup with .* at {where}$"):
        ledger.verify()


def test_a_lost_tail_of_rows_and_links_is_told_by_the_note_beside_the_ledger(ledger: vc.Ledger) -> None:
    change(
        ledger,
        "DELETE FROM charges WHERE id = 4",
        "DELETE FROM chain WHERE row_id = 4",
    )
    for use in (lambda: ledger.budget("people"), ledger.history):
        with pytest.raises(LedgerError, match="older than the note beside it"):
            use()


def test_verify_tells_how_much_it_checked(ledger: vc.Ledger) -> None:
    place = PartOf('{"by": ["age"]}', "[1]")
    ledger.charge("people", laplace_statement("1/20"), purpose="part", within=[place])
    checked = ledger.verify()
    # The key, the account, five charges, three of them Ada's, a share, and a part with its partition.
    assert (checked.datasets, checked.charges, checked.links) == (1, 5, 1 + 1 + 5 + 3 + 1 + 2)


# The key


def test_the_key_is_the_owners_alone_and_a_lost_one_is_told_and_replaced(ledger: vc.Ledger) -> None:
    key = Path(f"{ledger.path}.key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    assert ledger.budget("people").left == 1 - SPENT
    for use in (lambda: ledger.charge("people", laplace_statement("1/20"), purpose="next"), ledger.verify):
        with pytest.raises(LedgerError, match=r"is missing.*veilcube ledger rekey"):
            use()
    ledger.rekey()
    assert ledger.verify().charges == 4
    ledger.charge("people", laplace_statement("1/20"), purpose="next")
    before = key.read_bytes()
    ledger.rekey()  # others may have seen it
    assert key.read_bytes() != before
    assert ledger.verify().charges == 5


def test_the_key_of_another_ledger_is_refused(ledger: vc.Ledger, tmp_path: Path) -> None:
    other = vc.Ledger(tmp_path / "other.db")
    other.create("people", 1)
    shutil.copy(f"{other.path}.key", f"{ledger.path}.key")
    with pytest.raises(LedgerError, match="is not that of the ledger"):
        ledger.budget("people")
    ledger.rekey()
    assert ledger.budget("people").left == 1 - SPENT


@pytest.mark.parametrize(
    "tampering",
    ["UPDATE charges SET amount = '1/1000' WHERE id = 2", "UPDATE chain SET balance = '1/10' WHERE number = 4"],
)
def test_a_ledger_whose_sums_are_wrong_gets_no_new_key(ledger: vc.Ledger, tampering: str) -> None:
    change(ledger, tampering)
    Path(f"{ledger.path}.key").unlink()
    with pytest.raises(LedgerError, match="is damaged"):
        ledger.rekey()


@pytest.mark.parametrize("has_key", [True, False])
def test_an_older_copy_gets_no_new_key_that_would_make_it_the_ledger(
    ledger: vc.Ledger, tmp_path: Path, has_key: bool
) -> None:
    ledger.backup(tmp_path / "copy.db")
    ledger.charge("people", laplace_statement("1/20"), purpose="later")
    shutil.copy(tmp_path / "copy.db", ledger.path)
    key = Path(f"{ledger.path}.key")
    if not has_key:
        key.unlink()
    with pytest.raises(LedgerError, match="is older than the note"):
        ledger.rekey()
    assert key.exists() is has_key


# Backups


def test_a_backup_restores_a_damaged_ledger_with_every_later_charge_that_can_be_read(
    ledger: vc.Ledger, tmp_path: Path
) -> None:
    ledger.backup(tmp_path / "copy.db")
    ledger.create("others", rho=1)
    ledger.charge("others", gaussian_statement("1/4"), purpose="of another dataset")
    ledger.charge("people", laplace_statement("1/20"), purpose="later", within=[PartOf('{"by": ["age"]}', "[1]")])
    change(ledger, "UPDATE charges SET amount = '1/1000' WHERE id = 2")
    with pytest.raises(LedgerError, match="damaged"):
        ledger.verify()
    ledger.restore(tmp_path / "copy.db")
    assert [charge.purpose for charge in ledger.history()][-2:] == ["of another dataset", "later"]
    assert (ledger.budget("people").left, ledger.budget("others").left) == (Fraction(1, 20), Fraction(3, 4))
    assert ledger.verify().charges == 6
    assert ledger.charge("people", laplace_statement("1/20"), purpose="goes on").charge_id == 7
    assert Path(f"{ledger.path}.damaged-1").exists()


@pytest.mark.parametrize("damage", ["truncate", "delete", "a late row", "an older copy", "no note"])
def test_where_charges_are_lost_a_restored_ledger_counts_all_as_spent_or_is_refused(
    ledger: vc.Ledger, tmp_path: Path, damage: str
) -> None:
    ledger.create("others", rho="1/3")
    ledger.backup(tmp_path / "copy.db")
    ledger.charge("people", laplace_statement("1/20"), purpose="later")
    note = Path(f"{ledger.path}.begun")
    if damage == "truncate":
        os.truncate(ledger.path, 5000)
    elif damage == "delete":
        ledger.path.unlink()
    elif damage == "a late row":
        change(ledger, "UPDATE charges SET purpose = 'other' WHERE id = 5")
    elif damage == "an older copy":
        shutil.copy(tmp_path / "copy.db", ledger.path)
    else:
        note.unlink()
    before = ledger.path.read_bytes() if ledger.path.exists() else None
    with pytest.raises(LedgerError, match="may be missing in its backup"):
        ledger.restore(tmp_path / "copy.db")
    assert (ledger.path.read_bytes() if ledger.path.exists() else None) == before
    ledger.restore(tmp_path / "copy.db", write_off=True)
    assert (ledger.budget("people").left, ledger.budget("others").left) == (0, 0)
    with pytest.raises(BudgetExceededError):
        ledger.charge("people", laplace_statement("1/1000"), purpose="nothing left")
    assert ledger.verify().datasets == 2
    assert [file.name for file in tmp_path.iterdir() if file.name.endswith(".tmp")] == []


@pytest.mark.parametrize("described", ["'{}'", "replace(described, 'age', 'agf')", "'no JSON'"])
def test_a_damaged_schema_costs_its_answers_and_no_charge(tmp_path: Path, described: str) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    ledger.backup(tmp_path / "copy.db")
    table = vc.protect(vc.Cube(vc.Schema([vc.Ordinal("age", 0, 9)]), [7] * 10), ledger=ledger, dataset="people")
    table.noisy_count(epsilon="1/4")
    change(ledger, f"UPDATE schemas SET described = {described}")
    with pytest.raises(LedgerError, match="damaged"):
        ledger.verify()
    ledger.restore(tmp_path / "copy.db")
    assert ledger.budget("people").left == Fraction(3, 4)
    assert list(ledger.history("people").answers) == []
    table.noisy_count(epsilon="1/4")
    assert (ledger.verify().charges, len(ledger.history("people").answers)) == (2, 1)


@pytest.mark.parametrize("total", [1, 2])
def test_parts_whose_charges_were_lost_are_not_asked_again_for_what_others_paid(tmp_path: Path, total: int) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", total)
    one, other = ([PartOf('{"by": ["sex"]}', part)] for part in ("[0]", "[1]"))
    ledger.charge("people", laplace_statement(1), purpose="one part", within=one)
    ledger.backup(tmp_path / "copy.db")
    assert ledger.charge("people", laplace_statement(1), purpose="the other", within=other).charge_id is None
    ledger.path.unlink()
    ledger.restore(tmp_path / "copy.db", write_off=True)
    for part in (one, other, [PartOf('{"by": ["age"]}', "[3]"), *other]):
        with pytest.raises(BudgetExceededError):
            ledger.charge("people", laplace_statement("1/1000"), purpose="again", within=part)
    assert ledger.verify().datasets == 1
    ledger.backup(tmp_path / "later.db")


@pytest.mark.parametrize("wrong", ["damaged", "another ledger's", "no ledger", "missing", "an old version"])
def test_what_is_no_whole_backup_of_the_ledger_restores_nothing(ledger: vc.Ledger, tmp_path: Path, wrong: str) -> None:
    copy = tmp_path / "copy.db"
    if wrong == "damaged":
        ledger.backup(copy)
        change(vc.Ledger(copy), "UPDATE charges SET purpose = 'other' WHERE id = 1")
    elif wrong == "another ledger's":
        other = vc.Ledger(tmp_path / "other.db")
        other.create("people", 1)
        other.backup(copy)
    elif wrong == "no ledger":
        copy.write_text("no ledger")
    elif wrong == "an old version":
        old_ledger(copy, 4)
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="no whole backup of the ledger"):
        ledger.restore(copy, write_off=True)
    assert ledger.path.read_bytes() == before


def test_a_damaged_ledger_is_not_backed_up_and_a_file_that_is_there_not_overwritten(
    ledger: vc.Ledger, tmp_path: Path
) -> None:
    ledger.backup(tmp_path / "copy.db")
    with pytest.raises(LedgerError, match="is there already"):
        ledger.backup(tmp_path / "copy.db")
    change(ledger, "UPDATE charges SET purpose = 'other' WHERE id = 1")
    with pytest.raises(LedgerError, match="damaged"):
        ledger.backup(tmp_path / "second.db")
    assert not (tmp_path / "second.db").exists()


def test_the_commands_check_copy_restore_and_rekey(
    ledger: vc.Ledger, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call, url, copy = caller(capfd), str(ledger.path), str(tmp_path / "copy.db")
    assert call("ledger", "verify", url).out.startswith(f"The ledger {url} is as it was written: 1 dataset, 4 charges")
    assert call("ledger", "backup", url, copy).code == 0
    change(ledger, "UPDATE charges SET purpose = 'other' WHERE id = 1")
    assert "at row 1 of charges" in call("ledger", "verify", url).err
    assert json.loads(call("ledger", "restore", url, copy, "--json").out) == {
        "ledger": url,
        "datasets": 1,
        "charges": 4,
        "links": 10,
    }
    Path(f"{url}.key").unlink()
    assert "ledger rekey" in call("ledger", "verify", url).err
    assert call("ledger", "rekey", url).code == 0
    listed = json.loads(call("ledger", "history", url, "--limit", "2", "--offset", "1", "--json").out)
    assert [charge["id"] for charge in listed["charges"]] == [2, 3]
    assert json.loads(call("ledger", "history", url, "--limit", "0", "--json").out)["charges"] == []
    assert call("ledger", "history", url, "--limit", "2").out.count("\n") == 4
