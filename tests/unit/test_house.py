"""The house keeps its bars: rooms of few modules, short functions, imports through doors, no cycles."""

from pathlib import Path

import pytest
from tools.house import House, measured

HOUSE = House()
UNIT_TESTS = Path(__file__).parent
# What the house still asks for types, until every family answers for itself; it may only become less.
MOST_QUESTIONS_FOR_TYPES = 75
BARS = [name for name in measured(HOUSE) if not name.startswith("questions")]


@pytest.mark.parametrize("bar", BARS)
def test_nothing_offends_the_bar(bar: str) -> None:
    found, most = measured(HOUSE)[bar]
    assert len(found) <= most, found


def test_no_new_question_for_the_type_of_a_strategy_design_operator_or_noise() -> None:
    assert len(HOUSE.type_questions()) <= MOST_QUESTIONS_FOR_TYPES


def test_an_import_past_a_door_and_a_cycle_would_be_found(tmp_path) -> None:
    for room, other in (("one", "two"), ("two", "one")):
        folder = tmp_path / "veilcube" / room
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "inner.py").write_text(f"from veilcube.{other}.inner import name\n")
    house = House(tmp_path / "veilcube")
    assert len(house.past_doors()) == 2
    assert house.cycles() == ["veilcube.one <-> veilcube.two"]


def folders_without_counterpart(tests: Path, source: Path) -> list[str]:
    """Return the folders with tests that mirror no folder of the package."""
    folders = {module.parent.relative_to(tests) for module in tests.rglob("test_*.py")}
    return sorted(str(folder) for folder in folders if not (source / folder).is_dir())


def test_unit_tests_lie_in_the_folder_of_what_they_test() -> None:
    assert folders_without_counterpart(UNIT_TESTS, HOUSE.root) == []


def test_unit_tests_in_a_folder_of_their_own_would_be_found(tmp_path: Path) -> None:
    for folder in ("rooms", "history_of_bugs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_it.py").touch()
    source = tmp_path / "source"
    (source / "rooms").mkdir(parents=True)
    assert folders_without_counterpart(tmp_path, source) == ["history_of_bugs"]
