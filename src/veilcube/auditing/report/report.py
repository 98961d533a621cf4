"""What an audit found: a finding for each way of looking, with its witness, as text and as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from math import isfinite
from pathlib import Path

from veilcube.auditing.statistics import show_epsilon
from veilcube.errors import AuditError
from veilcube.privacy import show_fraction
from veilcube.system import atomic_file, read_path

SHOWN = 200


@dataclass(frozen=True)
class Witness:
    """Two neighbouring tables, and what tells them apart."""

    table: tuple[object, ...]
    neighbour: tuple[object, ...]
    event: str

    def to_dict(self) -> dict[str, object]:
        """Return the witness as plain data."""
        return {
            "table": [_shown(one) for one in self.table],
            "neighbour": [_shown(one) for one in self.neighbour],
            "event": self.event,
        }

    def __str__(self) -> str:
        return f"{_listed(self.table)} against {_listed(self.neighbour)}: {self.event}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _listed(records: Sequence[object]) -> str:
    return f"[{', '.join(_shown(repr(one) if isinstance(one, str) else one) for one in records)}]"


@dataclass(frozen=True)
class AuditFinding:
    """What one way of looking found. ``epsilon`` is what the mechanism spends at least, where that was found.

    ``passed`` is None where this way could not look at the mechanism, and ``words`` say why.
    """

    method: str
    passed: bool | None
    words: str
    epsilon: float | None = None
    witness: Witness | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return the finding as plain data; an epsilon without bound is the text "infinite"."""
        return {
            "method": self.method,
            "passed": self.passed,
            "words": self.words,
            "epsilon": _plain(self.epsilon),
            "witness": None if self.witness is None else self.witness.to_dict(),
            "details": {name: _plain(value) for name, value in self.details.items()},
        }


def _plain(value: object) -> object:
    if isinstance(value, float) and not isfinite(value):
        return "infinite" if value > 0 else None
    return show_fraction(value) if isinstance(value, Fraction) else value


@dataclass(frozen=True)
class AuditReport:
    """Whether a mechanism keeps its promise, as far as it was looked at: ``passed``, the greatest ``epsilon`` found.

    ``witness`` shows the two tables and the event behind the worst finding, ``method`` says by what it was found.
    """

    mechanism: str
    promise: str
    neighbours: str
    tables: str
    findings: tuple[AuditFinding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found that breaks the promise."""
        return all(finding.passed is not False for finding in self.findings)

    @property
    def worst(self) -> AuditFinding:
        """The finding that says most: one that fails if any does, then the one with the greatest epsilon."""
        return max(self.findings, key=lambda one: (one.passed is False, one.epsilon is not None, one.epsilon or 0.0))

    @property
    def epsilon(self) -> float:
        """What the mechanism spends at least: the greatest epsilon that was found."""
        return max((one.epsilon for one in self.findings if one.epsilon is not None), default=0.0)

    @property
    def witness(self) -> Witness | None:
        """The tables and the event of the worst finding."""
        return self.worst.witness

    @property
    def method(self) -> str:
        """How the worst finding was made."""
        return self.worst.method

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain data."""
        return {
            "mechanism": self.mechanism,
            "promise": self.promise,
            "neighbours": self.neighbours,
            "tables": self.tables,
            "passed": self.passed,
            "epsilon": _plain(self.epsilon),
            "method": self.method,
            "witness": None if self.witness is None else self.witness.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def to_html(self) -> str:
        """Return the report as one page, which needs nothing else."""
        return page_of(self)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file."""
        target = read_path(path, "the file of the report", AuditError)
        with atomic_file(target) as stream:
            stream.write(self.to_html().encode())
        return target

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(report: AuditReport) -> list[str]:
    verdict = "PASSED: nothing was found that breaks" if report.passed else "FAILED: it does not keep"
    lines = [
        f"Audit of {report.mechanism}",
        f"{verdict} {report.promise} ({report.neighbours}).",
        f"Looked at: {report.tables}.",
        f"Spends at least epsilon {show_epsilon(report.epsilon)}.",
    ]
    for finding in report.findings:
        lines.append(f"  {finding.method}: {verdict_of(finding)}. {finding.words}")
        if finding.witness is not None and (finding.passed is False or finding.epsilon):
            lines.append(f"    witness: {finding.witness}")
    return lines


def verdict_of(finding: AuditFinding) -> str:
    """Return the verdict in a word."""
    return {True: "passed", False: "FAILED", None: "not done"}[finding.passed]


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  body {{ margin: 0 auto; max-width: 960px; padding: 32px 24px; color: #1f2933; background: #fff;
         font: 16px/1.5 system-ui, "Liberation Sans", Arial, sans-serif; }}
  table {{ width: 100%; border-collapse: collapse; margin-top: 24px; }}
  th, td {{ text-align: left; vertical-align: top; padding: 8px 12px 8px 0; border-bottom: 1px solid #e4e7eb; }}
  .verdict {{ padding: 12px 16px; border-left: 4px solid {colour}; background: #f5f7fa; }}
  code {{ overflow-wrap: anywhere; }}
  .muted {{ color: #616e7c; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="verdict"><strong>{verdict}</strong> {promise} ({neighbours}). It spends at least epsilon {epsilon}.</p>
<p class="muted">Looked at: {tables}.</p>
<table>
<thead><tr><th scope="col">Method</th><th scope="col">Verdict</th><th scope="col">Found</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</main>
</body>
</html>
"""


def page_of(report: AuditReport) -> str:
    """Return a page; all that comes from the mechanism or its records is escaped."""
    rows = []
    for finding in report.findings:
        witness = "" if finding.witness is None else f"<br>Witness: <code>{escape(str(finding.witness))}</code>"
        cells = (escape(finding.method), escape(verdict_of(finding)), escape(finding.words) + witness)
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return PAGE.format(
        title=escape(f"Audit of {report.mechanism}"),
        colour="#009e73" if report.passed else "#d55e00",
        verdict="Passed: nothing was found that breaks" if report.passed else "Failed: it does not keep",
        promise=escape(report.promise),
        neighbours=escape(report.neighbours),
        epsilon=escape(show_epsilon(report.epsilon)),
        tables=escape(report.tables),
        rows="\n".join(rows),
    )
