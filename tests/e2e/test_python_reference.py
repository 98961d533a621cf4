"""The Python reference names all that is public, and its signatures are those of the code."""

import re

import pytest
from tools.reference import MARKED, PAGE, entry_of, render

import veilcube
from veilcube import errors

WITHOUT_BLOCKS = re.sub(r"^```.*?^```", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, veilcube.VeilcubeError)]


def is_documented(name: str) -> bool:
    """Whether lists and sentences name it, as ``it`` or ``.it``: alone, in a call, with a type or in a dotted name."""
    return re.search(rf"`\.?{name}[`(.:]", WITHOUT_BLOCKS) is not None


def test_the_signatures_are_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == render(written), "run: make reference"


def test_every_public_callable_but_the_errors_has_its_signature_on_the_page() -> None:
    listed = {name for _, names, _ in MARKED.findall(PAGE.read_text(encoding="utf-8")) for name in names.split()}
    kinds = {"VeilcubeError", "Plan", "Release", "PrivacyStatement"}  # nobody calls these: they are returned
    assert set(veilcube.__all__) - kinds <= listed


def test_a_signature_is_written_as_the_code_has_it() -> None:
    assert entry_of("open") == ("open(path: str | Path) -> Release", "Open a release file; it may come from anybody.")
    assert entry_of("Schema.names")[0] == ".names: tuple[str, ...]"
    assert entry_of("Schema.from_toml")[0] == "Schema.from_toml(path: str | Path) -> Schema"
    assert entry_of("KernelPCA")[0] == 'KernelPCA(alpha: str | float = "loo", prior: Prior = None, folds: int = 5)'
    assert entry_of("ProtectedTable.where")[0].startswith(".where(condition: Query | None = None, /, **conditions")


def test_a_stale_signature_is_found() -> None:
    stale = "<!-- signatures: open -->\n\n- `open(path)`:\n  Open.\n\n<!-- end of signatures -->"
    assert "open(path: str | Path) -> Release" in render(stale)


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
