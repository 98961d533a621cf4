"""Whoever wrote a paper is named rightly wherever it is cited."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
# From the title pages of the papers.
AUTHORS = {
    "TR-2010-003": "Xiao, Xiong and Yuan",
    "TR-2011-005": "Xiao, Xiong and Yuan",
    "2011": "Xiao, Wang and Gehrke",
    "TKDE 2011": "Xiao, Wang and Gehrke",
    "2012": "Chen, Zhou and Bhowmick",
    "EDBT 2012": "Chen, Zhou and Bhowmick",
    "2013": "Ying, Wu and Wang",
}
SURNAMES = {name for names in AUTHORS.values() for name in re.split(r", | and ", names)}
CITED = re.compile(r"((?:[A-Z][a-z]+, )+[A-Z][a-z]+ and [A-Z][a-z]+),? \(?((?:[A-Z]+ )?20\d\d|TR-20\d\d-00\d)")


def test_citations_name_the_authors_of_their_papers() -> None:
    files = [path for folder in ("src", "docs", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.*")]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".md")}
    cited = [(path, *found) for path, text in texts.items() for found in CITED.findall(" ".join(text.split()))]
    ours = [(path, names, paper) for path, names, paper in cited if set(re.split(r", | and ", names)) & SURNAMES]
    assert {"TR-2011-005", "2011", "2012", "2013"} <= {paper for *_, paper in ours}
    assert [(path, names, paper) for path, names, paper in ours if AUTHORS.get(paper) != names] == []
