"""The benchmark of Gaussian noise: what is compared is comparable, and a quick run shows every figure."""

import pytest
from benchmarks.zcdp import EQUAL_RHO, FAMILIES, Compared, cases, main, price_verdicts


@pytest.mark.parametrize("number", range(2))
def test_laplace_noise_at_the_price_of_epsilon_1_in_rho_is_that_of_epsilon_1(number: int) -> None:
    found = Compared.of(cases(quick=True)[number])
    assert found.at_rho.rho == EQUAL_RHO
    assert found.laplace_at_rho == pytest.approx(found.pure.expected_error)
    assert found.at_rho.expected_error < found.pair.expected_error < found.pure.expected_error


def test_six_rows_in_21_tables_cost_27_and_not_126() -> None:
    in_sum, in_length = price_verdicts()
    assert in_sum.value == 126
    assert in_length.value == pytest.approx(27.495, abs=1e-3)
    assert in_sum.is_reached
    assert in_length.is_reached


@pytest.mark.slow
def test_a_quick_run_shows_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick"]) == 0
    shown = capsys.readouterr().out
    for name in FAMILIES:
        assert f"{name}: error / planned" in shown
        assert f"{name}: 95% intervals that hold" in shown
