"""What the docs site is made of: which pages in which order, and where links of the repository lead on the site.

Pages are those of docs/, a few of the root, and what pages link to besides: folders, code and tests. Their order is
that of docs/index.md. Needs nothing but Python, so that tests can check it without building; ``docs_hooks.py`` builds.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FRONT = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
TITLES = {"readme.md": "In five minutes"}
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
CODE = re.compile(r"`[^`]*`")
FENCE = re.compile(r" *(?:```|~~~)")
LANGUAGES = {".py": "python", ".md": "markdown", ".toml": "toml"}

Navigation = list[str | dict[str, "str | Navigation"]]


def place(path: str) -> str:
    """Return where a file or folder of the repository lies on the site."""
    inside = path.removeprefix("docs/")
    folder = (ROOT / path).is_dir()
    if inside != path:
        return f"{inside}/index.md" if folder else inside
    return FRONT.get(path, f"source/{path}/index.md" if folder else f"source/{path}.md")


def origin(uri: str) -> str:
    """Return the file of the repository that a page of the site shows."""
    fronts = {page: path for path, page in FRONT.items()}
    return fronts.get(uri, f"docs/{uri}")


def targets(text: str, path: str) -> Iterator[str]:
    """Yield what a page of the repository links to, as paths from its root, in the page's order."""
    for target, _ in LINK.findall(_outside_fences(text, lambda line: line, keep=False)):
        if "://" not in target and not target.startswith("mailto:"):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def rewritten(text: str, path: str) -> str:
    """Return a page with links that work on the site, and with lists that its Markdown sees as lists."""
    here = posixpath.dirname(place(path))

    def moved(match: re.Match[str]) -> str:
        found = next(targets(match[0], path), None)
        if found is None or not (ROOT / found).exists():
            return match[0]
        return f"]({posixpath.relpath(place(found), here or '.')}{match[2] or ''})"

    return _outside_fences(_with_gaps(text), lambda line: LINK.sub(moved, _with_bars(line)))


def _with_bars(line: str) -> str:
    """Take the backslash from bars in the code of a table row, where Python-Markdown would show it."""
    return CODE.sub(lambda code: code[0].replace(r"\|", "|"), line) if line.startswith("|") else line


def _outside_fences(text: str, change: Callable[[str], str], *, keep: bool = True) -> str:
    """Change the lines of a page that are not code in fences; code is kept, or left out."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fence = bool(FENCE.match(line))
        if not (fenced or fence):
            lines.append(change(line))
        elif keep:
            lines.append(line)
        fenced ^= fence
    return "\n".join(lines)


def _with_gaps(text: str) -> str:
    """Put an empty line before a list that follows a paragraph directly, which Python-Markdown asks for."""
    before = ""

    def spaced(line: str) -> str:
        nonlocal before
        begins = ITEM.match(line) and before.strip() and not ITEM.match(before) and not before.startswith(" ")
        before = line
        return f"\n{line}" if begins else line

    return _outside_fences(text, spaced)


def navigation(index: str) -> Navigation:
    """Return the pages under the headings of the index, each where it is linked first; of a folder all pages."""
    seen: set[str] = set()
    sections: Navigation = ["index.md"]
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        entries: Navigation = []
        for path in targets(text, "docs/index.md"):
            uri = place(path)
            if uri not in seen:
                seen.add(uri)
                entries.append(_entry(path, uri))
        sections.append({title.strip(): entries})
    return sections


def _entry(path: str, uri: str) -> str | dict[str, str | Navigation]:
    if (ROOT / path).is_dir():
        return {_title(path): [uri, *(place(page) for page in pages_of(path))]}
    return {TITLES[uri]: uri} if uri in TITLES else uri


def _title(folder: str) -> str:
    return posixpath.basename(folder).capitalize()


def pages_of(folder: str) -> list[str]:
    """Return the pages of a folder of the repository, and of the folders in it."""
    return sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / folder).rglob("*.md"))


def leaves(entries: Navigation) -> Iterator[str]:
    """Yield every page of a navigation."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values():
                yield from leaves([inner] if isinstance(inner, str) else inner)


def generated() -> dict[str, str]:
    """Return the pages that do not lie in docs/ as they are: place on the site, and Markdown."""
    pages = {uri: (ROOT / path).read_text(encoding="utf-8") for path, uri in FRONT.items()}
    for path in [*FRONT, *pages_of("docs")]:
        for found in targets((ROOT / path).read_text(encoding="utf-8"), path):
            outside = not found.startswith("docs/") and found not in FRONT
            if (ROOT / found).is_dir():
                pages[place(found)] = _names(found) if outside else _listing(found)
            elif outside and (ROOT / found).is_file():
                pages[place(found)] = _code(found)
    return pages


def _listing(folder: str) -> str:
    lines = [f"# {_title(folder)}", ""]
    for page in pages_of(folder):
        heading = (ROOT / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{heading}]({posixpath.relpath(page, folder)})")
    return "\n".join(lines)


def _names(folder: str) -> str:
    names = sorted(path.name for path in (ROOT / folder).iterdir() if path.is_file())
    return "\n".join([_head(folder), *(f"- `{name}`" for name in names)])


def _code(path: str) -> str:
    language = LANGUAGES.get(posixpath.splitext(path)[1], "text")
    return f"{_head(path)}~~~~{language}\n{(ROOT / path).read_text(encoding='utf-8')}~~~~\n"


def _head(path: str) -> str:
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n"


class _Assets(HTMLParser):
    """Collects what a page loads from outside; plain links that a reader may follow are none of it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note addresses that a browser loads by itself."""
        for name, value in attrs:
            loads = name in {"src", "srcset", "poster", "data"} or (name == "href" and tag != "a")
            if loads and re.match(r"(?:https?:)?//", value or ""):
                self.found.append(f"<{tag} {name}={value}>")


def outside_assets(html: str) -> list[str]:
    """Return what a browser would load from outside to show a page."""
    parser = _Assets()
    parser.feed(html)
    return parser.found
