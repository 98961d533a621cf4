"""``make fuzz``: every reader for minutes, each in a process of its own. What breaks one is kept in the corpus."""

import argparse
import hashlib
import subprocess
import sys
import time

from fuzz.engine import CORPUS, fuzz
from fuzz.targets import targets

NAMES = ("schema", "sql", "facts", "release", "codebook", "http")


def run(name: str, seconds: float, seed: int) -> int:
    """Fuzz one target, and keep what breaks it; 1 if anything does."""
    with targets() as known:
        found = fuzz(known[name], seconds, seed)
    for content, words in found.broken:
        (CORPUS / name).mkdir(parents=True, exist_ok=True)
        kept = CORPUS / name / hashlib.sha256(content).hexdigest()[:16]
        kept.write_bytes(content)
        print(f"  {kept}: {words}")
    told = f"{found.runs:,} inputs, {found.refused:,} refused, the slowest took {found.slowest:.2f} s"
    print(f"{name}: {told}, {len(found.broken)} broke it", flush=True)
    return int(bool(found.broken))


def main() -> int:
    """Fuzz what is asked for, each in a process of its own; 1 if anything was broken."""
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    if len(chosen.names) == 1:
        return run(chosen.names[0], chosen.seconds, chosen.seed)
    how = ["--seconds", str(chosen.seconds), "--seed", str(chosen.seed)]
    codes = [subprocess.call([sys.executable, "-m", "fuzz", name, *how]) for name in chosen.names]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
