"""Proofs, code and tests name each other: a mechanism without a page, or a page without its test, fails.

The end of each page in docs/proofs lists the code that it is about and the tests that hold the code to it. Whatever is
listed there names the page.
"""

import inspect
import re
from pathlib import Path

import pytest

from veilcube.auditing.ours import asked, strategies
from veilcube.curator import mechanisms
from veilcube.planner import Plan
from veilcube.privacy import Neighbours, Promise

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "proofs").glob("*.md"))
NAMED = re.compile(r"docs/proofs/([a-z-]+)\.md(#[a-z0-9-]+)?")
# What mechanisms are made of: not their own claims.
NO_MECHANISM = {"Mechanism"}


def parts_of(page: str) -> dict[str, list[str]]:
    """Return the paths under Code and under Tests at the end of a page."""
    _, _, end = page.partition("\n## Code and tests\n")
    code, _, tests = end.partition("\nTests:\n")
    return {
        "code": re.findall(r"^- \[`(.+?)`\]\(\.\./\.\./\1\)$", code, re.MULTILINE),
        "tests": re.findall(r"^- \[`(.+?)`\]\(\.\./\.\./\1\)$", tests, re.MULTILINE),
    }


def missing_links(root: Path, page: Path) -> list[str]:
    """Return what is missing between a page and what it lists."""
    parts = parts_of(page.read_text(encoding="utf-8"))
    found = [f"{page.name} lists no {kind}" for kind, paths in parts.items() if not paths]
    for path in parts["code"] + parts["tests"]:
        file = root / path
        if not file.is_file():
            found.append(f"{page.name} lists {path}, which is not there")
        elif f"docs/proofs/{page.name}" not in file.read_text(encoding="utf-8"):
            found.append(f"{path} does not name docs/proofs/{page.name}")
    return found


def mechanism_modules() -> dict[str, Path]:
    """Return every mechanism that the curator's side has, with its module, found by the door of the room."""
    door = (ROOT / "src/veilcube/curator/mechanisms/__init__.pyi").read_text(encoding="utf-8")
    names = set(re.findall(r"as (\w+Mechanism)\b", door)) - NO_MECHANISM
    return {name: Path(inspect.getfile(getattr(mechanisms, name))) for name in sorted(names)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_lists_its_code_and_its_tests_and_they_name_it(page: Path) -> None:
    assert missing_links(ROOT, page) == []


@pytest.mark.parametrize("name", mechanism_modules())
def test_a_mechanism_names_a_theorem_whose_page_lists_it(name: str) -> None:
    module = mechanism_modules()[name]
    named = {page for page, theorem in NAMED.findall(module.read_text(encoding="utf-8")) if theorem}
    assert named, f"{name} states no theorem: name docs/proofs/<page>.md#theorem-1 in {module.name}"
    path = module.relative_to(ROOT).as_posix()
    pages = {page: (ROOT / "docs" / "proofs" / f"{page}.md").read_text(encoding="utf-8") for page in named}
    assert any(path in parts_of(text)["code"] for text in pages.values()), f"no page lists {path}"


@pytest.mark.parametrize("name", mechanism_modules())
def test_a_mechanism_is_audited(name: str) -> None:
    """Those of releases come from the registry by the strategy's name; the others are named."""
    released = {type(mechanisms.mechanism_for(plan)).__name__ for plan in _plans()}
    assert name in released or name in inspect.getsource(asked)


def _plans() -> list[Plan]:
    return [
        strategies.StrategyMechanism.named(name, Promise.read(1), Neighbours.ADD_REMOVE, 1).plan
        for name in strategies.MEASURED
    ]


def test_a_page_without_a_test_and_a_test_without_the_page_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text('"""Proved in docs/proofs/page.md."""')
    (tmp_path / "test_it.py").write_text('"""Tests."""')
    page = tmp_path / "page.md"
    page.write_text("# It holds\n\n## Code and tests\n\nCode:\n- [`code.py`](../../code.py)\n")
    assert missing_links(tmp_path, page) == ["page.md lists no tests"]
    page.write_text(page.read_text() + "\nTests:\n- [`test_it.py`](../../test_it.py)\n- [`gone.py`](../../gone.py)\n")
    assert missing_links(tmp_path, page) == [
        "test_it.py does not name docs/proofs/page.md",
        "page.md lists gone.py, which is not there",
    ]
