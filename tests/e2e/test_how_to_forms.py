"""Every how-to page shows its subject in Python and on the command line; test_docs.py runs both."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "how-to"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:[^#\n]* )?veilcube [a-z]+ ", re.MULTILINE)
CALLED = re.compile(r"\[\"veilcube\", ")
# What a page may do without, and why.
WITHOUT_PYTHON: dict[str, str] = {}
WITHOUT_COMMAND: dict[str, str] = {}


def has_python(text: str) -> bool:
    return any(language == "python" for language, _ in BLOCK.findall(text))


def has_command(text: str) -> bool:
    """Whether a block of a shell runs the command, or one of Python calls it."""
    return any(
        COMMAND.search(body) if language in ("sh", "console") else language == "python" and CALLED.search(body)
        for language, body in BLOCK.findall(text)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_a_python_form_and_a_command_line_form(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert has_python(text) != (page.name in WITHOUT_PYTHON)
    assert has_command(text) != (page.name in WITHOUT_COMMAND)


def test_a_page_without_a_form_is_found() -> None:
    text = "Use `veilcube plan`.\n\n```python\nimport veilcube as vc\n```\n\n```sh\npython -m zipfile -l a.veil\n```\n"
    assert has_python(text)
    assert not has_command(text)
    assert not has_python("```toml\n[[attribute]]\n```\n")


def test_every_page_is_linked_where_readers_begin() -> None:
    text = (FOLDER.parent / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"how-to/{page.name}" not in text] == []
