"""The page about the command line says what the commands say."""

from pathlib import Path

from veilcube.cli.reference import render

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "command-line.md"


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == render(), f"run: python -m veilcube.cli.reference {PAGE.relative_to(PAGE.parents[2])}"


def test_every_option_and_every_exit_code_is_explained() -> None:
    rows = [line.split(" | ") for line in render().splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 60
    assert all(row[-1].strip(" |") for row in rows)
