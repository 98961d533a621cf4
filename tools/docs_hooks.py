"""What mkdocs calls while it builds the docs site (``make docs``): navigation, more pages, links, and a last check."""

import re
from pathlib import Path

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import DelimiterProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools import docs_site

WORKER = "assets/search_worker.js"
OUTSIDE_SHEET = re.compile(r"(?:url\(|@import )\s*['\"]?(?:https?:)?//[^)'\"]*")


class PlainUnderscores(Extension):
    """Leaves underscores alone: here they are indices of formulas, and emphasis is written with stars."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Let stars alone emphasise."""
        md.inlinePatterns.register(DelimiterProcessor("*", "strong,em", md), "em_strong", 60)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the order of pages from the index."""
    config.markdown_extensions.append(PlainUnderscores())
    config.extra["polyfills"] = [WORKER]
    index = Path(config.docs_dir) / "index.md"
    config.nav = docs_site.navigation(index.read_text(encoding="utf-8"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that docs/ does not hold."""
    for uri, text in docs_site.generated().items():
        files.append(File.generated(config, uri, content=text))
    worker = Path(__file__).with_name("docs_worker.js").read_text(encoding="utf-8")
    files.append(File.generated(config, WORKER, content=worker))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead links to where things lie on the site; generated pages of code and folders have such links already."""
    if page.file.generated_by and page.file.src_uri not in docs_site.FRONT.values():
        return markdown
    return docs_site.rewritten(markdown, docs_site.origin(page.file.src_uri))


def on_post_build(config: MkDocsConfig) -> None:
    """Let pages that are opened from a folder be searched, and refuse a site that loads anything from outside."""
    site = Path(config.site_dir)
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    (site / "search" / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
    found = []
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        search = docs_site.outside_assets if path.suffix == ".html" else OUTSIDE_SHEET.findall
        found += [f"{path.relative_to(site)}: {asset}" for asset in search(path.read_text(encoding="utf-8"))]
    if found:
        raise PluginError("the site would load from outside: " + "; ".join(found[:10]))
