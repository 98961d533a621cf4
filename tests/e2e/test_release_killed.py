"""A process that releases without a pause is killed at random moments: every release that exists was paid for."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import veilcube as vc

KILLS = 8

# Says when it begins, so that the time of importing is not what gets killed.
RELEASER = """
import sys
from pathlib import Path
import veilcube as vc
folder = Path(sys.argv[1])
cube = vc.Cube(vc.Schema([vc.Ordinal("age", 1, 50)]), [3] * 50)
vc.release(cube, epsilon=1, strategy="identity")
print("ready", flush=True)
while True:
    account = {"ledger": f"sqlite:///{folder / 'budget.db'}", "dataset": "people"}
    release = vc.release(cube, epsilon="1/1000", strategy="identity", **account)
    number = release.privacy.charged_to.rsplit(" ", 1)[-1]
    release.save(folder / f"{number}.veil")
"""


def test_kill_9_never_leaves_a_release_that_was_not_charged(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1000)
    chance = random.Random(4)
    for _ in range(KILLS):
        child = subprocess.Popen([sys.executable, "-c", RELEASER, str(tmp_path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        before = len(list(tmp_path.glob("*.veil")))
        while len(list(tmp_path.glob("*.veil"))) == before:  # on a slow disk too, each child makes a release
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.5))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        charges = {str(charge.id): charge for charge in ledger.history("people")}
        for file in tmp_path.glob("*.veil"):
            release = vc.open(file)
            assert release.privacy == charges[file.stem].statement
        assert ledger.budget("people").spent == sum(charge.epsilon for charge in charges.values())
    assert len(list(tmp_path.glob("*.veil"))) >= KILLS
