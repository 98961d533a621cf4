"""The docs site has every page in its navigation, in the order of the index, and links lead to pages."""

import posixpath

from tools.docs_site import LINK, ROOT, generated, leaves, navigation, outside_assets, pages_of, place, rewritten

INDEX = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
LISTED = list(leaves(navigation(INDEX)))


def missing(index: str) -> list[str]:
    listed = set(leaves(navigation(index)))
    return [page for page in pages_of("docs") if place(page) not in listed]


def test_the_navigation_lists_every_page_once_and_nothing_else() -> None:
    assert missing(INDEX) == []
    assert len(LISTED) == len(set(LISTED))
    assert set(LISTED) <= {place(page) for page in pages_of("docs")} | set(generated())


def test_a_page_that_the_index_does_not_link_to_would_be_found() -> None:
    assert missing(INDEX.replace("(how-to/plan.md", "(how-to/serve.md")) == ["docs/how-to/plan.md"]


def test_the_navigation_goes_from_first_steps_to_explanations() -> None:
    order = ["readme.md", "tutorial.md", "how-to/plan.md", "reference/python.md", "privacy-guarantee.md", "notation.md"]
    assert sorted(order, key=LISTED.index) == order
    assert LISTED.index("proofs/index.md") + 1 == LISTED.index("proofs/adaptive.md")


def test_links_of_every_page_lead_to_pages_of_the_site() -> None:
    site = {place(page) for page in pages_of("docs")} | set(generated())
    for path in [*pages_of("docs"), "README.md", "CONTRIBUTING.md", "SECURITY.md"]:
        text = rewritten((ROOT / path).read_text(encoding="utf-8"), path)
        for target, _ in LINK.findall(text):
            if target.endswith(".md"):
                assert posixpath.normpath(posixpath.join(posixpath.dirname(place(path)), target)) in site, (
                    path,
                    target,
                )


def test_pages_are_adapted_outside_code_only() -> None:
    page = "See:\n- [a](../README.md#ask-it)\n- [b](proofs/)\n\n| `x\\|y` |\n\n```python\na[b](../LICENSE)\n- c\n```"
    assert rewritten(page, "docs/index.md") == (
        "See:\n\n- [a](readme.md#ask-it)\n- [b](proofs/index.md)\n\n| `x|y` |\n\n```python\na[b](../LICENSE)\n- c\n```"
    )


def test_assets_from_outside_are_found_and_plain_links_are_not() -> None:
    assert outside_assets('<a href="https://example.org">x</a><img src="images/x.png"><link href="style.css">') == []
    for asset in ('<script src="https://x.org/a.js">', '<link href="//x.org/a.css">', '<img src="http://x.org/a.png">'):
        assert len(outside_assets(asset)) == 1
