"""The threat model and the evaluation page answer every point with a link that leads somewhere."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")
LAYERS = ["The guarantee", "Algorithms", "Utility and bias", "Trust, access", "Collection"]


def answers_of(page: str) -> list[tuple[str, str]]:
    """Return the question and the last column of every row of the tables of a page, but for their heads."""
    rows = [line.strip().strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [(row[0].strip(), row[-1]) for row in rows if row[0].strip() not in ("asked", "attack", "attacker")]


def unanswered(page: str, folder: Path) -> list[str]:
    """Return the questions whose answer has no link, or one that leads nowhere."""
    found = []
    for question, answer in answers_of(page):
        links = LINK.findall(answer)
        if not links or not all((folder / path).exists() for path, _ in links):
            found.append(question)
    return found


def test_every_point_of_the_evaluation_is_answered_with_a_link() -> None:
    page = (DOCS / "nist-sp-800-226.md").read_text(encoding="utf-8")
    assert len(answers_of(page)) >= 25
    assert unanswered(page, DOCS) == []
    titles = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert all(title.startswith(layer) for title, layer in zip(titles, LAYERS, strict=True))


def test_every_attack_of_the_threat_model_has_a_test_that_shows_what_stops_it() -> None:
    page = (DOCS / "threat-model.md").read_text(encoding="utf-8")
    done = page.split("## What is done")[1].split("## What is not done")[0]
    assert len(answers_of(done)) >= 10
    assert unanswered(done, DOCS) == []
    assert all("tests/" in answer for _, answer in answers_of(done))


@pytest.mark.parametrize("answer", ["nothing", "[there](no/such/page.md)"])
def test_an_answer_without_a_link_would_be_found(answer: str) -> None:
    assert unanswered(f"| asked | answer | held by |\n|---|---|---|\n| Why? | so | {answer} |\n", DOCS) == ["Why?"]
