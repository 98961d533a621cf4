"""What is shipped: every pinned package is in the bill of materials, and a wheel is the same byte for byte."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tools.known_flaws import main as known_flaws
from tools.sbom import bill_of, components_of

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = {"name": "veilcube", "version": "1", "license": "Apache-2.0"}


def test_every_pinned_package_is_in_the_bill_with_its_digests() -> None:
    components = components_of(LOCK)
    pinned = re.findall(r"^([^\s=]+)==([^\s;\\]+)", LOCK, re.MULTILINE)
    assert [(one["name"], one["version"]) for one in components] == pinned
    assert len({one["bom-ref"] for one in components}) == len(components)
    assert sum(len(one["hashes"]) for one in components) == LOCK.count("--hash=")  # type: ignore[arg-type]
    assert all(one["hashes"] for one in components)


def test_a_package_without_a_digest_would_show() -> None:
    (alone,) = components_of("numpy==2.0.0\n")
    assert "hashes" not in alone
    with pytest.raises(ValueError, match="no package and no hash"):
        components_of("numpy>=2\n")


def test_the_same_lock_gives_the_same_bill_and_another_lock_another() -> None:
    assert bill_of(LOCK, PROJECT) == bill_of(LOCK, PROJECT)
    changed = LOCK.replace("\n", "\n# a comment\n", 1)
    assert bill_of(changed, PROJECT)["serialNumber"] != bill_of(LOCK, PROJECT)["serialNumber"]
    assert json.loads(json.dumps(bill_of(LOCK, PROJECT)))["bomFormat"] == "CycloneDX"


def wheel_of(folder: Path, *, epoch: str | None, old: bool) -> tuple[str, bytes]:
    """Build a copy of the sources, whose files are of today or old, in a process of its own."""
    folder.mkdir()
    for name in ("src", "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, folder / name)
    if old:
        for path in folder.rglob("*.py"):
            os.utime(path, (time.time() - 10**8, time.time() - 10**8))
            path.chmod(0o600)
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    if epoch is not None:
        environment["SOURCE_DATE_EPOCH"] = epoch
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    (wheel,) = (folder / "out").glob("*.whl")
    return wheel.name, wheel.read_bytes()


def test_a_wheel_that_is_built_twice_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    first = wheel_of(tmp_path / "a", epoch="1577836800", old=False)
    assert wheel_of(tmp_path / "another place", epoch="1577836800", old=True) == first
    assert wheel_of(tmp_path / "later", epoch="1700000000", old=False) != first


REPORT = """import sys; sys.stdout.write('{"dependencies": [{"name": "x", "version": "1", "vulns": %s}]}')"""


def test_known_flaws_are_told_and_an_offline_machine_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert known_flaws([sys.executable, "-c", REPORT % '[{"id": "CVE-1"}]']) == 1
    assert capsys.readouterr().out == "x 1: CVE-1\n"
    assert known_flaws([sys.executable, "-c", REPORT % "[]"]) == 0
    for command in (["/no/such/pip-audit"], [sys.executable, "-c", "raise SystemExit(1)"]):
        capsys.readouterr()
        assert known_flaws(command) == 0
        assert "not looked up" in capsys.readouterr().out
