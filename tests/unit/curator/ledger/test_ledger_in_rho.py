"""Accounts in rho: what charges of either kind cost, what is refused and why, and what the command line tells."""

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from support.command_line import caller
from support.statements import gaussian_statement, laplace_statement
from veilcube.curator.ledger import Ledger, PartOf, Receipt
from veilcube.errors import BudgetExceededError, LedgerError, PrivacyError
from veilcube.privacy import DELTA_SHOWN, Budget, Currency, epsilon_for

RHO, EPSILON = Currency.RHO, Currency.EPSILON


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("adult", rho=1)
    ledger.create("pure", 1)
    return ledger


# Creating


def test_an_account_is_kept_in_what_it_was_created_in(book: Ledger) -> None:
    assert (book.currency("adult"), book.currency("pure")) == (RHO, EPSILON)
    assert book.budget("adult") == Budget(Fraction(1), currency=RHO) == book.ensure("adult", rho=1)
    assert [(account.name, account.currency) for account in book.datasets()] == [("adult", RHO), ("pure", EPSILON)]


@pytest.mark.parametrize("begin", [Ledger.create, Ledger.ensure])
def test_the_same_number_in_the_other_currency_is_another_budget(book: Ledger, begin: object) -> None:
    with pytest.raises(LedgerError, match=r"exists already .* a budget of rho 1, not epsilon 1; .* fixed once"):
        begin(book, "adult", 1)
    with pytest.raises(LedgerError, match="a budget of epsilon 1, not rho 1"):
        begin(book, "pure", rho=1)
    with pytest.raises(LedgerError, match="a budget of rho 1, not 2; "):
        begin(book, "adult", rho=2)


@pytest.mark.parametrize("rho", [0, -1, float("nan"), float("inf"), "much", True, 10**10, "1e-90", Fraction(1, 3**800)])
def test_a_total_that_is_no_sensible_rho_is_refused_and_makes_no_file(tmp_path: Path, rho: object) -> None:
    ledger = Ledger(tmp_path / "none.db")
    with pytest.raises(PrivacyError):
        ledger.create("adult", rho=rho)
    assert not ledger.path.exists()


def test_a_budget_is_in_one_currency(book: Ledger) -> None:
    for use in (
        lambda **budget: book.create("new", **budget),
        lambda **budget: book.ensure("new", **budget),
        lambda **budget: book.allow("adult", "Ada", **budget),
        lambda **budget: book.ensure_allowed("adult", "Ada", **budget),
    ):
        with pytest.raises(PrivacyError, match="in epsilon or in rho, not in both"):
            use(epsilon=1, rho=1)
        with pytest.raises(PrivacyError, match=r"missing; .*epsilon=1.*rho="):
            use()
    assert len(book.datasets()) == 2


# Charging


def test_a_gaussian_charge_costs_its_rho_and_a_pure_one_half_its_square(book: Ledger) -> None:
    first = book.charge("adult", gaussian_statement("1/10"), purpose="Gaussian")
    second = book.charge("adult", laplace_statement("1/2"), purpose="Laplace")
    assert (first.currency, first.cost, second.currency, second.cost) == (RHO, Fraction(1, 10), RHO, Fraction(1, 8))
    assert book.budget("adult").left == 1 - Fraction(1, 10) - Fraction(1, 8)
    charges = book.history("adult")
    assert [(charge.amount, charge.rho, charge.epsilon, charge.currency) for charge in charges] == [
        (Fraction(1, 10), Fraction(1, 10), None, RHO),
        (Fraction(1, 8), Fraction(1, 8), None, RHO),
    ]
    assert charges[1].statement.epsilon == Fraction(1, 2)
    assert charges[0].statement.words.endswith("Charged to the budget of 'adult' as charge 1.")
    assert charges[1].statement.words.endswith("Charged to the budget of 'adult' as charge 2 of rho 0.125.")


def test_gaussian_noise_is_refused_to_an_account_in_epsilon_and_told_why(book: Ledger) -> None:
    with pytest.raises(LedgerError) as refusal:
        book.charge("pure", gaussian_statement("1/1000"), purpose="Gaussian")
    assert str(refusal.value) == (
        "dataset 'pure' has its budget in epsilon, in which Gaussian noise has no price, because at every epsilon some "
        "output remains that tells more; nothing was charged, so ask without delta and rho, or create "
        "a dataset with a budget in rho"
    )
    assert book.history("pure") == []


def test_a_receipt_without_a_ledger_is_in_the_currency_of_its_statement() -> None:
    assert Receipt.uncharged(gaussian_statement("1/10")).cost == Fraction(1, 10)
    assert Receipt.uncharged(laplace_statement("1/10")).cost == Fraction(1, 10)
    assert Receipt.uncharged(gaussian_statement("1/10")).currency is RHO


def test_over_budget_is_told_in_rho_with_what_fits_in_either(book: Ledger) -> None:
    book.charge("adult", gaussian_statement("1/2"), purpose="half")
    with pytest.raises(BudgetExceededError) as refusal:
        book.charge("adult", laplace_statement("5/4"), purpose="too much")
    assert str(refusal.value) == (
        "the charge of rho 0.78125 (25/32) to dataset 'adult' was refused and nothing charged: 0.5 (1/2) is left of 1; "
        "ask for rho '1/2' or less, or for pure epsilon '1' or less"
    )
    assert book.charge("adult", laplace_statement(1), purpose="what fits").cost == Fraction(1, 2)
    with pytest.raises(BudgetExceededError, match=r"charge of rho .* whole budget of 1 is spent"):
        book.charge("adult", gaussian_statement("1/100000"), purpose="nothing left")


def test_a_pure_charge_beyond_every_rho_is_over_budget(book: Ledger) -> None:
    with pytest.raises(BudgetExceededError, match=r"rho 5e\+17 "):
        book.charge("adult", laplace_statement(10**9), purpose="everything")


def test_a_price_of_too_many_digits_is_refused(book: Ledger) -> None:
    with pytest.raises(PrivacyError, match="330 digits"):
        book.charge("adult", laplace_statement(Fraction(1, 3**500)), purpose="long")
    assert book.history("adult") == []


def test_parts_of_a_partition_cost_the_dearest_in_rho_too(book: Ledger) -> None:
    place = [PartOf('{"by": ["age"]}', f"[{cell}]") for cell in range(3)]
    book.charge("adult", gaussian_statement("1/10"), purpose="a", within=[place[0]])
    assert book.charge("adult", gaussian_statement("1/10"), purpose="b", within=[place[1]]).charge_id is None
    # An epsilon of 1/2 costs 1/8, of which 1/10 is paid for.
    third = book.charge("adult", laplace_statement("1/2"), purpose="c", within=[place[2]])
    assert third.statement.words.endswith("as charge 2 of rho 0.025, the rest with another part.")
    assert book.budget("adult").spent == Fraction(1, 8)
    assert [charge.amount for charge in book.history("adult")] == [Fraction(1, 10), Fraction(1, 40)]


costs = st.one_of(
    st.fractions(min_value="1/1000", max_value=1, max_denominator=1009).map(lambda rho: ("gaussian", rho)),
    st.fractions(min_value="1/1000", max_value=1, max_denominator=1009).map(lambda epsilon: ("laplace", epsilon)),
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(sequence=st.lists(costs, min_size=1, max_size=8))
def test_any_mixture_of_charges_adds_up_exactly_and_stays_within_the_budget(
    tmp_path_factory: pytest.TempPathFactory, sequence: list[tuple[str, Fraction]]
) -> None:
    book = Ledger(tmp_path_factory.mktemp("mixed") / "budget.db")
    book.create("adult", rho=1)
    spent = Fraction(0)
    for kind, amount in sequence:
        cost = amount if kind == "gaussian" else amount**2 / 2
        statement = gaussian_statement(amount) if kind == "gaussian" else laplace_statement(amount)
        if spent + cost <= 1:
            book.charge("adult", statement, purpose=kind)
            spent += cost
        else:
            with pytest.raises(BudgetExceededError):
                book.charge("adult", statement, purpose=kind)
        assert book.budget("adult") == Budget(Fraction(1), spent, RHO)
    assert sum((charge.amount for charge in book.history("adult")), Fraction(0)) == spent


# Shares


def test_shares_are_in_the_currency_of_the_account(book: Ledger) -> None:
    assert book.allow("adult", "Ada", rho="1/8") == Budget(Fraction(1, 8), currency=RHO)
    book.charge("adult", laplace_statement("1/4"), purpose="some", analyst="Ada")
    (share,) = book.shares("adult")
    assert (share.currency, share.budget) == (RHO, Budget(Fraction(1, 8), Fraction(1, 32), RHO))
    with pytest.raises(
        BudgetExceededError, match=r"the charge of rho .* to the share of analyst 'Ada' .* for rho '3/32'"
    ):
        book.charge("adult", gaussian_statement("1/8"), purpose="more", analyst="Ada")
    assert book.ensure_allowed("adult", "Ada", rho="1/8").left == Fraction(3, 32)
    with pytest.raises(LedgerError, match=r"may spend rho 0.125 .* not 0.25"):
        book.ensure_allowed("adult", "Ada", rho="1/4")


@pytest.mark.parametrize("grant", [Ledger.allow, Ledger.ensure_allowed])
def test_a_share_in_the_other_currency_is_refused_and_told_why(book: Ledger, grant: object) -> None:
    with pytest.raises(LedgerError, match=r"budget in rho, and a share .* as rho, not as epsilon"):
        grant(book, "adult", "Ada", "1/8")
    with pytest.raises(LedgerError, match=r"budget in epsilon, and a share .* as epsilon, not as rho"):
        grant(book, "pure", "Ada", rho="1/8")
    with pytest.raises(LedgerError, match="rho 2 for analyst 'Ada' is more than the whole budget of 1"):
        grant(book, "adult", "Ada", rho=2)
    assert book.shares("adult") == book.shares("pure") == []


# Damage


def tamper(book: Ledger, statement: str) -> None:
    with closing(sqlite3.connect(book.path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        for table in ("accounts", "charges"):
            connection.execute(f"DROP TRIGGER {table}_not_updated")
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE accounts SET currency = 'euro'",
        # In epsilon Gaussian noise has no price, and in rho a pure charge another one.
        "UPDATE accounts SET currency = 'epsilon'",
        "UPDATE charges SET amount = '1/9' WHERE id = 1",
        "UPDATE charges SET amount = '1/2' WHERE id = 2",
    ],
)
def test_charges_that_do_not_cost_what_they_state_are_damage(book: Ledger, damage: str) -> None:
    book.charge("adult", gaussian_statement("1/10"), purpose="Gaussian")
    book.charge("adult", laplace_statement("1/2"), purpose="Laplace")
    tamper(book, damage)
    with pytest.raises(LedgerError, match="is damaged; restore a backup"):
        book.history("adult")


def test_a_pure_account_that_is_called_one_in_rho_is_damage(book: Ledger) -> None:
    book.charge("pure", laplace_statement("1/2"), purpose="Laplace")
    tamper(book, "UPDATE accounts SET currency = 'rho'")
    with pytest.raises(LedgerError, match="is damaged; restore a backup"):
        book.history("pure")


@pytest.mark.parametrize("currency", ["'euro'", "NULL", "''"])
def test_the_file_itself_refuses_another_currency(book: Ledger, currency: str) -> None:
    insert = f"INSERT INTO accounts SELECT 'new', amount, neighbours, unit, created, {currency} FROM accounts LIMIT 1"
    with closing(sqlite3.connect(book.path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(insert)


# The command line


def test_the_commands_speak_the_unit_of_the_account(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call, url = caller(capfd), str(tmp_path / "budget.db")
    created = call("ledger", "create", url, "adult", "--rho", "0.1")
    implied = f"At delta 1e-09 that implies epsilon {float(epsilon_for('0.1', DELTA_SHOWN)):.6g} in all"
    assert created.out.startswith("Dataset 'adult' has a budget of rho 0.1, of which 0.1 is left. ")
    assert f"{implied}, 0 for what is spent." in " ".join(created.out.split())
    allowed = call("ledger", "allow", url, "adult", "Ada", "--rho", "1/20")
    assert allowed.out.startswith("Analyst 'Ada' may spend rho 0.05 of dataset 'adult', of which 0.05 is left.")
    Ledger(url).charge("adult", laplace_statement("1/5"), purpose="some")
    shown = " ".join(call("ledger", "show", url).out.split())
    spent = f"{float(epsilon_for('0.02', DELTA_SHOWN)):.6g}"
    assert f"{implied}, {spent} for what is spent." in shown
    assert "adult rho 0.1 0.02 0.08" in shown
    assert "1 " in call("ledger", "history", url).out
    assert "adult rho 0.02" in " ".join(call("ledger", "history", url).out.split())


def test_the_commands_write_both_units_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call, url = caller(capfd), str(tmp_path / "budget.db")
    made = json.loads(call("ledger", "create", url, "adult", "--rho", "1/10", "--json").out)
    whole = {"delta": "1/1000000000", "epsilon": str(epsilon_for("1/10", DELTA_SHOWN)), "spent": "0"}
    assert made == {
        "ledger": url,
        "dataset": "adult",
        "currency": "rho",
        "rho": "1/10",
        "spent": "0",
        "left": "1/10",
        "implied": whole,
    }
    pure = json.loads(call("ledger", "create", url, "pure", "--epsilon", "1", "--json").out)
    assert (pure["currency"], pure["epsilon"], pure["left"]) == ("epsilon", "1", "1")
    assert "implied" not in pure
    share = json.loads(call("ledger", "allow", url, "adult", "Ada", "--rho", "1/20", "--json").out)
    assert (share["rho"], share["left"], share["implied"]["spent"]) == ("1/20", "1/20", "0")
    ledger = Ledger(url)
    ledger.charge("adult", gaussian_statement("1/50"), purpose="Gaussian")
    ledger.charge("pure", laplace_statement("1/2"), purpose="Laplace")
    accounts = json.loads(call("ledger", "show", url, "--json").out)["datasets"]
    assert [(entry["currency"], entry["spent"]) for entry in accounts] == [("rho", "1/50"), ("epsilon", "1/2")]
    assert accounts[0]["implied"] == whole | {"spent": str(epsilon_for("1/50", DELTA_SHOWN))}
    charges = json.loads(call("ledger", "history", url, "--json").out)["charges"]
    assert (charges[0]["currency"], charges[0]["rho"], "epsilon" in charges[0]) == ("rho", "1/50", False)
    assert (charges[1]["currency"], charges[1]["epsilon"], "rho" in charges[1]) == ("epsilon", "1/2", False)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "size of the budget is missing"),
        (("--epsilon", "1", "--rho", "1"), "not in both"),
        (("--rho", "nan"), "rho must be a finite number"),
        (("--rho", "0"), "rho must be"),
    ],
)
def test_the_commands_refuse_what_is_no_budget(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], options: tuple[str, ...], told: str
) -> None:
    refused = caller(capfd)("ledger", "create", str(tmp_path / "budget.db"), "adult", *options)
    assert refused.code == PrivacyError.exit_code
    assert told in refused.err
