"""The Python reference names all that is public, so that a new name cannot be added without a word about it."""

import re
from pathlib import Path

import pytest

import veilcube
from veilcube import errors

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "python.md"
WITHOUT_BLOCKS = re.sub(r"^```.*?^```", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, veilcube.VeilcubeError)]


def is_documented(name: str) -> bool:
    """Whether the tables and sentences name it: on its own, or as the beginning of a call or of a dotted name."""
    return re.search(rf"`{name}[`(.]", WITHOUT_BLOCKS) is not None


@pytest.mark.parametrize("name", veilcube.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert is_documented(name), f"docs/reference/python.md says nothing about veilcube.{name}"


def test_a_name_that_does_not_exist_is_not_on_the_page() -> None:
    assert not is_documented("Wizard")


@pytest.mark.parametrize(
    "name",
    [name for name in vars(veilcube.Release) if not name.startswith("_") and name != "record"],
)
def test_every_question_of_a_release_is_on_the_page(name: str) -> None:
    assert is_documented(name), f"docs/reference/python.md says nothing about Release.{name}"


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_on_the_page_with_its_exit_code(kind: type[veilcube.VeilcubeError]) -> None:
    assert re.search(rf"^\| `{kind.__name__}` \| {kind.exit_code} \|", WITHOUT_BLOCKS, re.MULTILINE)


def test_the_errors_are_found() -> None:
    assert {errors.VeilcubeError, errors.QueryError, errors.CapacityError} <= set(ERRORS)
