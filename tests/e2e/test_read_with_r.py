"""R reads exports and release files with nothing but its base packages."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of

SCHEMA = vc.Schema([vc.Ordinal("age", 20, 29), vc.Nominal("job", ["Nurse", "=1+1", 'Aide, "senior"', "Ärztin"])])
SCRIPT = """
read <- function(...) read.csv(..., check.names = FALSE, encoding = "UTF-8")
cells <- read(unz("r.veil", "tables/cells.csv"))
jobs <- read(unz("r.veil", "tables/job.csv"))
table <- read("t.csv")
zipped <- read("t.csv.gz")
stopifnot(identical(table, zipped), is.integer(table$whole), is.integer(table$age), is.numeric(table$low))
cat(sum(cells$value), sum(jobs$value), sum(table$whole), nrow(table), names(table), sep = "\\n")
cat(unique(table$job), sep = "\\n")
print(aggregate(whole ~ age, data = table, FUN = sum)$whole)
"""


def rscript() -> str:
    """Return R's command, installed from Debian where it is missing; skips where that cannot be done."""
    found = shutil.which("Rscript")
    if found is None and shutil.which("apt-get") is not None:
        for words in (["update"], ["install", "--yes", "--no-install-recommends", "r-base-core"]):
            subprocess.run(["apt-get", "--quiet", *words], capture_output=True, timeout=600, check=False)
        found = shutil.which("Rscript")
    if found is None:
        pytest.skip("R is not here and could not be installed with apt-get (r-base-core); install it to run this test")
    return found


@pytest.mark.slow
def test_r_reads_exports_and_tables_inside_a_release(tmp_path: Path) -> None:
    release = release_of(SCHEMA, np.random.default_rng(0).poisson(30, SCHEMA.shape), seed=1, strategy="tree")
    release.save(tmp_path / "r.veil")
    release.export(tmp_path / "t.csv", whole=True)
    release.export(tmp_path / "t.csv.gz", whole=True)
    command = [rscript(), "--vanilla", "-e", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    total = float(release.count().value)
    assert [float(line) for line in lines[:2]] == pytest.approx([total, total], abs=0.05)
    assert int(lines[2]) == round(total)
    assert lines[3:11] == ["40", "age", "job", "value", "low", "high", "stddev", "whole"]
    assert lines[11:15] == ["Nurse", "'=1+1", 'Aide, "senior"', "Ärztin"] or lines[14].endswith("rztin")
    assert len(" ".join(lines[15:]).replace("[1]", "").split()) == 10
