"""Looks up known flaws of the pinned packages with pip-audit, where that is installed and the network allows it.

python -m tools.known_flaws COMMAND... runs the command (such as pip-audit -r requirements.lock -f json). Ends with 1 if
a package has a known flaw, and with 0 and one sentence if nothing could be looked up.
"""

import json
import subprocess
import sys


def main(command: list[str]) -> int:
    """Run pip-audit, and tell what it found; 1 if that is anything."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        packages = json.loads(done.stdout)["dependencies"]
    except (OSError, ValueError, KeyError, TypeError):
        print("Known flaws were not looked up: pip-audit is not installed, or its database cannot be reached.")
        return 0
    flaws = [f"{one['name']} {one['version']}: {flaw['id']}" for one in packages for flaw in one.get("vulns", [])]
    print("\n".join(flaws) or f"{len(packages)} packages have no known flaw.")
    return 1 if flaws else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
