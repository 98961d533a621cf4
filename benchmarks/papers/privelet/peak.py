"""Runs a command and prints its seconds and its peak of resident memory in bytes, as one line of JSON.

A process of its own, because the kernel charges a new process with the size of the one that started it: this one is
small. Run: python peak.py COMMAND...
"""

import json
import os
import subprocess
import sys
import time


def main(command: list[str]) -> int:
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps({"seconds": time.perf_counter() - started, "peak": used.ru_maxrss * 1024}))
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
