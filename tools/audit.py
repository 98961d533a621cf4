"""Audits every mechanism of veilcube with fresh entropy, and writes a report as text, JSON and a page.

``make audit``, or ``python -m tools.audit FOLDER --trials 20000 --records 3``. Both neighbour relations, rows and
persons of two rows, in epsilon and (for releases) in rho. The statistics of one audit are wrong about a correct
mechanism with probability 0.001 at most. One that fails by statistics alone is therefore audited once more, and counts
as broken if it fails again: then all audits together are wrong with probability 1e-6 times their number at most, which
the report states.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from itertools import product
from pathlib import Path

import veilcube as vc
from veilcube.auditing import OURS, AuditReport
from veilcube.auditing.ours import MEASURED
from veilcube.auditing.statistics import ERROR

RELATIONS, UNITS = ("add-remove", "replace"), (1, 2)
EPSILON, RHO = "1", "1/50"
VERSION = version("veilcube")


@dataclass(frozen=True)
class Audited:
    """One audit: the mechanism, the unit, the report, and whether it had to be looked at again."""

    mechanism: str
    max_rows: int
    report: AuditReport
    is_second: bool
    seconds: float

    @property
    def words(self) -> str:
        """What was audited."""
        unit = "rows" if self.max_rows == 1 else f"persons of up to {self.max_rows} rows"
        return f"{self.mechanism}, {self.report.promise}, {self.report.neighbours}, {unit}"

    def to_dict(self) -> dict[str, object]:
        """Return the audit as plain data."""
        more = {"max_rows": self.max_rows, "second": self.is_second, "seconds": round(self.seconds, 1)}
        return self.report.to_dict() | more


def audits(names: tuple[str, ...], trials: int, records: int) -> Iterator[Audited]:
    """Yield the audit of every mechanism, promise, relation and unit."""
    for name in names:
        promises = [{"epsilon": EPSILON}, {"rho": RHO}] if name in MEASURED else [{"epsilon": EPSILON}]
        for promise, neighbours, max_rows in product(promises, RELATIONS, UNITS):
            given = {"neighbours": neighbours, "max_rows": max_rows, "trials": trials, "records": records}
            start = time.monotonic()
            report, is_second = vc.audit(name, **promise, **given), False
            if {finding.method for finding in report.findings if finding.passed is False} == {"statistics"}:
                report, is_second = vc.audit(name, **promise, **given), True
            yield Audited(name, max_rows, report, is_second, time.monotonic() - start)


def summary(done: list[Audited]) -> str:
    """Return what all audits found together, and how sure that is."""
    broken = sum(not one.report.passed for one in done)
    return (
        f"{len(done)} audits of {len({one.mechanism for one in done})} mechanisms: {broken} broken. If all keep their "
        f"promises, one of these reports says otherwise by chance with probability {ERROR**2 * len(done):.2g} at most."
    )


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Audit of veilcube {version}</title>
<style>
body {{ margin: 0 auto; max-width: 960px; padding: 32px 24px; font: 16px/1.5 system-ui, sans-serif; color: #1f2933; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: 6px 12px 6px 0; border-bottom: 1px solid #e4e7eb; vertical-align: top; }}
pre {{ white-space: pre-wrap; }}</style></head>
<body><main><h1>Audit of veilcube {version}</h1><p>{summary}</p>
<table>
<thead><tr><th scope="col">Mechanism</th><th scope="col">Verdict</th><th scope="col">Found</th></tr></thead><tbody>
{rows}
</tbody></table></main></body></html>
"""


def write(folder: Path, done: list[Audited]) -> None:
    """Write the report in its three forms."""
    folder.mkdir(parents=True, exist_ok=True)
    told = [f"{one.words}\n{one.report}" for one in done]
    (folder / "audit.txt").write_text("\n\n".join([summary(done), *told]) + "\n", encoding="utf-8")
    data = {"version": VERSION, "summary": summary(done), "audits": [one.to_dict() for one in done]}
    (folder / "audit.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    rows = "\n".join(
        f"<tr><td>{escape(one.words)}</td><td>{'passed' if one.report.passed else 'FAILED'}</td>"
        f"<td><pre>{escape(str(one.report))}</pre></td></tr>"
        for one in done
    )
    page = PAGE.format(version=escape(VERSION), summary=escape(summary(done)), rows=rows)
    (folder / "audit.html").write_text(page, encoding="utf-8")


def main(words: list[str] | None = None) -> int:
    """Audit what was asked for; 1 if a mechanism is broken."""
    parser = argparse.ArgumentParser(prog="tools.audit", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--records", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=OURS, choices=OURS, metavar="MECHANISM")
    chosen = parser.parse_args(words)
    done = []
    for one in audits(tuple(chosen.only), chosen.trials, chosen.records):
        done.append(one)
        print(f"{'passed' if one.report.passed else 'FAILED'}  {one.words}  {one.seconds:.1f} s", flush=True)
    write(chosen.folder, done)
    print(summary(done))
    return 0 if all(one.report.passed for one in done) else 1


if __name__ == "__main__":
    sys.exit(main())
