"""Every block in the documentation runs, and what it names exists: links, paths of modules, dotted names.

Python blocks of a page share one namespace, shell blocks one folder. Blocks marked ``python`` and ``sh`` are run;
``console`` is for commands that a test cannot run (``make demo``).
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.postgres import require_postgres

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# What pages and docstrings may name: every file in these folders, and its folders, from any folder on.
OURS = ("src", "tests", "docs", "benchmarks", "tools")
FILES = [path.relative_to(ROOT) for folder in OURS for path in (ROOT / folder).rglob("*") if path.is_file()]
KNOWN = {place for path in FILES if path.suffix != ".pyc" for place in (path, path.with_suffix(""), *path.parents)}
NAMES = {f"/{place.as_posix()}" for place in KNOWN}
FOLDERS = {folder.name for path in FILES for folder in path.parents}
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
PATH_IN_SOURCE = re.compile(r"(?<![\w/])((?:src|tests|docs|benchmarks|tools)/[\w./-]*\w)")
DOTTED = re.compile(r"`(veilcube(?:\.\w+)+)")
# In docstrings modules are also named from their package on; `schema.shape` and `record.plan` speak of objects.
PACKAGES = sorted({path.name for path in (ROOT / "src" / "veilcube").iterdir() if path.is_dir()} - {"schema", "record"})
DOTTED_IN_SOURCE = re.compile(rf"``((?:{'|'.join(PACKAGES)})(?:\.[a-z]\w*)+)``")
ANCHOR_IN_SOURCE = re.compile(r"(docs/[\w./-]+\.md)#([\w-]+)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")

# What a page finds in its folder when a reader gets there.
PREPARE = {
    "README.md": """
import random
random.seed(1)
with open("visits.csv", "w") as file:
    file.write("patient_id,age,district,diagnosis\\n")
    for patient in range(1500):
        for _ in range(random.choice([1, 1, 2, 5])):
            place, code = random.choice(["North", "South", "East", "West"]), random.choice(["I10", "I21", "J18", "J45"])
            file.write(f"{patient},{random.randint(0, 99)},{place},{code}\\n")
with open("visits.toml", "w") as file:
    file.write(TOML_BLOCKS)
""",
    "read-without-veilcube.md": """
import veilcube as vc
schema = vc.Schema([vc.Ordinal("age", 17, 90), vc.Nominal("sex", ["Female", "Male"])])
vc.release(vc.Cube(schema, [[40, 38]] * 74), epsilon=1.0).save("adult.veil")
""",
    "count-in-a-database.md": f"""
import atexit, os, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from contextlib import ExitStack
from support.postgres import running_server
import psycopg
stack = ExitStack()
atexit.register(stack.close)
url = stack.enter_context(running_server())
with psycopg.connect(url, autocommit=True) as connection:
    connection.execute("CREATE DATABASE clinic")
os.environ |= {{"PGHOST": url.partition("host=")[2], "PGUSER": "curator"}}
with psycopg.connect(dbname="clinic") as connection:
    connection.execute("CREATE TABLE visits (patient INT, age INT, ward TEXT, is_test BOOLEAN)")
    connection.execute("INSERT INTO visits SELECT i / 4, i % 100, 'A', FALSE FROM generate_series(1, 500) AS i")
    connection.execute("CREATE SCHEMA clinic")
    connection.execute("CREATE VIEW clinic.visits AS SELECT * FROM visits")
""",
}
NEED_A_SERVER = ("count-in-a-database.md",)


def script_of(page: Path) -> str:
    """Return one Python program that runs a page's blocks in order."""
    text = page.read_text(encoding="utf-8")
    parts = [f"TOML_BLOCKS = {chr(10).join(TOML.findall(text))!r}", PREPARE.get(page.name, "")]
    for language, body in BLOCK.findall(text):
        if language == "python":
            parts.append(body)
        else:
            parts.append(f"import subprocess; subprocess.run(['bash', '-euo', 'pipefail', '-c', {body!r}], check=True)")
    return "\n".join(parts)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))], ids=lambda page: page.name
)
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path) -> None:
    if page.name in NEED_A_SERVER:
        require_postgres()
    (tmp_path / "page.py").write_text(script_of(page), encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def missing_paths(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Return the paths that a text names in a folder of ours, but that nothing has."""
    named = [name.rstrip("/") for name in pattern.findall(text) if name.split("/")[0] in FOLDERS]
    return [name for name in named if not any(known.endswith(f"/{name}") for known in NAMES)]


def is_importable(dotted: str) -> bool:
    """Whether a dotted name leads to a module, or to something in one."""
    module, _, name = dotted.rpartition(".")
    try:
        importlib.import_module(dotted)
    except ModuleNotFoundError:
        return bool(module) and is_importable(module) and hasattr(_resolve(module), name)
    return True


def _resolve(dotted: str) -> object:
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(_resolve(module), name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_and_dotted_names_on_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert missing_paths(text, PATH) == []
    assert [name for name in DOTTED.findall(text) if not is_importable(name)] == []


def test_paths_and_dotted_names_in_the_source_exist() -> None:
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in SOURCES}
    paths = {path: missing_paths(text, PATH_IN_SOURCE) for path, text in texts.items()}
    dotted = {
        path: [name for name in DOTTED_IN_SOURCE.findall(text) if not is_importable(f"veilcube.{name}")]
        for path, text in texts.items()
    }
    assert {path: found for path, found in paths.items() if found} == {}
    assert {path: found for path, found in dotted.items() if found} == {}


def missing_anchors(text: str) -> list[str]:
    """Return the headings of pages that a text names, but that these pages do not have."""
    return [
        f"{page}#{anchor}"
        for page, anchor in ANCHOR_IN_SOURCE.findall(text)
        if anchor not in {_anchor_of(title) for title in HEADING.findall((ROOT / page).read_text(encoding="utf-8"))}
    ]


def _anchor_of(title: str) -> str:
    """Return what a heading is linked to by, without what it says in brackets."""
    return title.partition("(")[0].strip().lower().replace(" ", "-")


def test_theorems_that_the_source_names_exist() -> None:
    texts = [path.read_text(encoding="utf-8") for path in SOURCES]
    assert sum(len(ANCHOR_IN_SOURCE.findall(text)) for text in texts) > 10
    assert [anchor for text in texts for anchor in missing_anchors(text)] == []
    assert missing_anchors("docs/proofs/zcdp.md#theorem-1, docs/proofs/zcdp.md#theorem-7") == [
        "docs/proofs/zcdp.md#theorem-7"
    ]


def test_a_path_and_a_name_that_do_not_exist_would_be_found() -> None:
    text = (
        "`operators/tree/axis.py`, `curator/counting`, `operators/tree/leaf.py`, `05/12/2024`, `posteriors/belief.py`"
    )
    assert missing_paths(text, PATH) == ["operators/tree/leaf.py"]
    assert is_importable("veilcube.curator.sampling.discrete_laplace")
    assert is_importable("veilcube.Schema.from_toml")
    assert not is_importable("veilcube.curator.noise.discrete_laplace")
