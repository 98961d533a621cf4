"""One suite for both stores, a file and a PostgreSQL database on a server of its own; and what one alone has."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

import veilcube as vc
from support.postgres import running_server
from support.statements import gaussian_statement, laplace_statement
from veilcube.curator.ledger import PartOf
from veilcube.curator.ledger.stores import postgres
from veilcube.errors import BudgetExceededError, LedgerError
from veilcube.privacy import PrivacyUnit

CUBE = vc.Cube(vc.Schema([vc.Ordinal("age", 0, 7)]), [5] * 8)
# What docs/how-to/keep-a-ledger.md tells to grant.
GRANTS = (
    "GRANT USAGE ON SCHEMA veilcube_ledger TO charger",
    "GRANT SELECT ON ALL TABLES IN SCHEMA veilcube_ledger TO charger",
    "GRANT INSERT ON veilcube_ledger.charges, veilcube_ledger.part_charges, veilcube_ledger.answers, "
    "veilcube_ledger.schemas, veilcube_ledger.chain, veilcube_ledger.requests TO charger",
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


@pytest.fixture
def database(server: str) -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS veilcube_ledger CASCADE")
    return server


@pytest.fixture(params=["file", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> vc.Ledger:
    kind = request.param
    return vc.Ledger(tmp_path / "budget.db" if kind == "file" else request.getfixturevalue("database"), timeout=60)


def test_budgets_are_spent_exactly_and_no_further(ledger: vc.Ledger) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.budget("people")
    ledger.create("people", 1)
    for _ in range(10):
        ledger.charge("people", laplace_statement("1/10"), purpose="tenth")
    with pytest.raises(BudgetExceededError, match="whole budget of 1 is spent"):
        ledger.charge("people", laplace_statement(Fraction(1, 10**30)), purpose="a hair more")
    assert [charge.id for charge in ledger.history("people")] == list(range(1, 11))
    assert ledger.verify().charges == 10


def test_terms_shares_and_currencies_bind(ledger: vc.Ledger) -> None:
    ledger.create("people", rho=1)
    ledger.create("others", 1, neighbours="replace", person="id")
    ledger.allow("people", "Ada", rho="1/4")
    ledger.charge("people", gaussian_statement("1/8"), purpose="some", analyst="Ada")
    with pytest.raises(BudgetExceededError, match="share of analyst 'Ada'"):
        ledger.charge("people", gaussian_statement("1/4"), purpose="more", analyst="Ada")
    with pytest.raises(LedgerError, match="'replace'"):
        ledger.charge("others", laplace_statement("1/2", unit=PrivacyUnit.person("id", 1)), purpose="neighbours")
    assert ledger.shares("people")[0].budget.left == Fraction(1, 8)
    assert [account.name for account in ledger.datasets()] == ["others", "people"]


def test_parts_cost_the_dearest_however_long_their_names_are(ledger: vc.Ledger) -> None:
    ledger.create("people", 1)
    places = [PartOf('{"by": ["' + "a" * 5000 + '"]}', f"[{cell}]") for cell in range(3)]
    numbers = [
        ledger.charge("people", laplace_statement(amount), purpose="part", within=[place]).charge_id
        for place, amount in zip(places, ("1/4", "1/4", "1/2"), strict=True)
    ]
    assert numbers == [1, None, 2]
    assert ledger.budget("people").spent == Fraction(1, 2)
    ledger.verify()


def test_answers_are_kept_found_and_not_paid_for_twice(ledger: vc.Ledger) -> None:
    ledger.create("people", 2)
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    assert table.noisy_count(epsilon=1).value == table.noisy_count(epsilon=1).value
    assert ledger.budget("people").spent == 1
    assert len(ledger.history("people").answers) == 1
    assert ledger.verify().charges == 1


def test_amounts_of_a_thousand_bits_stay_exact(ledger: vc.Ledger) -> None:
    ledger.create("people", 1)
    amounts = [Fraction(1, 2**1000 + 2 * number + 1) for number in range(5)]
    for amount in amounts:
        ledger.charge("people", laplace_statement(amount), purpose="long")
    assert ledger.budget("people").spent == sum(amounts)
    assert [charge.amount for charge in ledger.charges()] == amounts
    ledger.verify()


def test_threads_that_race_for_the_last_of_a_budget_find_one_winner(ledger: vc.Ledger) -> None:
    ledger.create("people", 1)

    def race(number: int) -> bool:
        try:
            return bool(ledger.charge("people", laplace_statement("2/3"), purpose=f"thread {number}"))
        except BudgetExceededError:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(race, range(8))) == [False] * 7 + [True]
    assert ledger.verify().charges == 1


# PostgreSQL alone


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_charges_that_wait_for_each_other_see_each_other_at_any_level_of_isolation(database: str, level: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE curator SET default_transaction_isolation = '{level}'")
        try:
            ledger = vc.Ledger(database, timeout=60)
            ledger.create("people", 1)

            def charge(number: int) -> int | None:
                return ledger.charge("people", laplace_statement("1/100"), purpose=f"thread {number}").charge_id

            with ThreadPoolExecutor(8) as pool:  # each thread has a connection of its own
                assert sorted(map(int, filter(None, pool.map(charge, range(40))))) == list(range(1, 41))
        finally:
            connection.execute("ALTER ROLE curator RESET default_transaction_isolation")


@pytest.mark.parametrize("when", ["before COMMIT", "after COMMIT", "after the answer"])
def test_a_connection_that_drops_never_charges_twice(database: str, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    ledger = vc.Ledger(database, timeout=60)
    ledger.create("people", 1)
    drops = iter([when])

    def drop(connection: postgres._Connection) -> None:
        with psycopg.connect(database, autocommit=True) as killer:
            killer.execute("SELECT pg_terminate_backend(%s)", (connection.raw.info.backend_pid,))
        raise psycopg.OperationalError("the connection dropped")

    def faulty(raw: psycopg.Connection) -> postgres._Connection:
        connection = postgres._Connection(raw)
        execute = raw.execute

        def watch(statement: object, *arguments: object) -> object:
            is_commit = statement == "COMMIT"
            if is_commit and when == "before COMMIT" and next(drops, None):
                drop(connection)
            done = execute(statement, *arguments)
            if is_commit and when == "after COMMIT" and next(drops, None):
                drop(connection)
            return done

        monkeypatch.setattr(raw, "execute", watch)
        return connection

    ledger._store._forget()
    connect = postgres.PostgresLedger._connect

    def watched(store: postgres.PostgresLedger) -> postgres._Connection:
        connection = connect(store)
        return connection if "execute" in connection.raw.__dict__ else faulty(connection.raw)

    monkeypatch.setattr(postgres.PostgresLedger, "_connect", watched)
    if when == "after the answer":
        waiting = postgres._wait_for_the_disk

        def dropping(connection: postgres._Connection) -> None:
            if next(drops, None):
                drop(connection)
            waiting(connection)

        monkeypatch.setattr(postgres, "_wait_for_the_disk", dropping)
    assert ledger.charge("people", laplace_statement("1/3"), purpose="once").charge_id == 1
    assert next(drops, "dropped") == "dropped"
    assert [charge.purpose for charge in ledger.history("people")] == ["once"]
    assert ledger.budget("people").spent == Fraction(1, 3)


def test_a_role_that_may_charge_cannot_rewrite_history_and_nobody_does_it_unasked(database: str) -> None:
    vc.Ledger(database).create("people", 1)
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS charger")
        owner.execute("CREATE ROLE charger LOGIN")
        for grant in GRANTS:
            owner.execute(grant)
    as_charger = database.replace("curator@", "charger@")
    ledger = vc.Ledger(as_charger)
    assert ledger.charge("people", laplace_statement("1/3"), purpose="allowed").charge_id == 1
    vc.protect(CUBE, ledger=ledger, dataset="people").noisy_count(epsilon="1/3")
    assert ledger.verify().charges == 2
    with pytest.raises(LedgerError, match="this user may not do that"):
        ledger.create("others", 1)
    for table in ("accounts", "charges", "chain", "answers", "shares", "part_charges", "schemas", "requests"):
        for statement in (f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
            for user, refusal in ((as_charger, "permission denied"), (database, "added and never changed")):
                with psycopg.connect(user, autocommit=True) as connection:
                    connection.execute("SET search_path = veilcube_ledger")
                    with pytest.raises(psycopg.Error, match=refusal):
                        connection.execute(statement)
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("DROP OWNED BY charger")
        owner.execute("DROP ROLE charger")


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE charges SET amount = '1/1000'",
        "UPDATE accounts SET amount = '9'",
        "UPDATE chain SET balance = '1/10' WHERE number = 1",
        "DELETE FROM chain WHERE number = 1",
    ],
)
def test_what_the_owner_changed_by_hand_is_noticed(database: str, tampering: str) -> None:
    ledger = vc.Ledger(database)
    ledger.create("people", 1)
    ledger.charge("people", laplace_statement("1/3"), purpose="once")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("SET search_path = veilcube_ledger; SET session_replication_role = replica")
        owner.execute(tampering)
    for use in (lambda: ledger.charge("people", laplace_statement("1/9"), purpose="next"), ledger.verify):
        with pytest.raises(LedgerError, match="is damaged; restore a backup of the database"):
            use()


def test_a_server_that_is_down_newer_or_of_no_address_is_told_in_a_sentence(database: str) -> None:
    with pytest.raises(LedgerError, match="cannot be reached, so nothing was charged"):
        vc.Ledger("postgresql://nobody@127.0.0.1:1/none", timeout=0.1).budget("people")
    ledger = vc.Ledger(database)
    ledger.create("people", 1)
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("INSERT INTO veilcube_ledger.layout VALUES (99)")
    with pytest.raises(LedgerError, match=r"of version 99 .* upgrade veilcube"):
        ledger.budget("people")
    with pytest.raises(LedgerError, match="pg_dump"):
        ledger.backup("copy.db")
    assert "secret" not in repr(vc.Ledger("postgresql://me:secret@host/db"))
