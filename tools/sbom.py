"""Writes a software bill of materials in CycloneDX from requirements.lock: python -m tools.sbom sbom.json

The same lock gives the same bytes: there is no time in it, and the serial number follows from the lock. What a package
needs only on some systems carries the lock's condition as a property.
"""

import argparse
import hashlib
import json
import re
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\?$")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
SPECIFICATION = "1.6"


def components_of(lock: str) -> list[dict[str, object]]:
    """Return every package that the lock pins, with the digests of its files."""
    found: list[dict[str, object]] = []
    for line in lock.splitlines():
        if package := PACKAGE.match(line):
            name, version, condition = package.groups()
            purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
            found.append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl})
            if condition:
                found[-1]["properties"] = [{"name": "python:marker", "value": condition}]
        elif digest := HASH.search(line):
            hashes: list[object] = found[-1].setdefault("hashes", [])  # type: ignore[assignment]
            hashes.append({"alg": "SHA-256", "content": digest[1]})
        elif line.strip() and not line.lstrip().startswith("#"):
            raise ValueError(f"requirements.lock has a line that is no package and no hash: {line}")
    return found


def bill_of(lock: str, project: dict[str, str]) -> dict[str, object]:
    """Return the bill of materials of a project with everything that its lock pins."""
    purl = f"pkg:pypi/{project['name']}@{project['version']}"
    packages = components_of(lock)
    licence = [{"license": {"id": project["license"]}}]
    ours = {"type": "library", "bom-ref": purl, "name": project["name"], "version": project["version"], "purl": purl}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=hashlib.sha256(lock.encode()).digest()[:16], version=4)}",
        "version": 1,
        "metadata": {"component": ours | {"licenses": licence}},
        "components": packages,
        "dependencies": [{"ref": purl, "dependsOn": sorted({str(one["bom-ref"]) for one in packages})}],
    }


def main() -> None:
    """Write the bill of this project."""
    parser = argparse.ArgumentParser(prog="tools.sbom", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=Path)
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parser.parse_args().file.write_text(json.dumps(bill_of(lock, project), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
