"""Every block in the documentation runs: Python blocks of a page share one namespace, shell blocks one folder.

Blocks marked ``python`` and ``sh`` are run; ``console`` is for commands that a test cannot run (``make demo``).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")

# What a page finds in its folder when a reader gets there.
PREPARE = {
    "README.md": """
import random
random.seed(1)
with open("people.csv", "w") as file:
    file.write("age,sex\\n")
    for _ in range(2000):
        file.write(f"{random.randint(17, 90)},{random.choice(['Female', 'Male'])}\\n")
with open("people.toml", "w") as file:
    file.write(TOML_BLOCKS)
""",
    "read-without-veilcube.md": """
import veilcube as vc
schema = vc.Schema([vc.Ordinal("age", 17, 90), vc.Nominal("sex", ["Female", "Male"])])
vc.release(vc.Cube(schema, [[40, 38]] * 74), epsilon=1.0).save("adult.veil")
""",
}


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
    (tmp_path / "page.py").write_text(script_of(page), encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"
