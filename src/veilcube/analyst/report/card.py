"""The release card: what somebody needs to know who was handed a release. As Markdown, and its entry in the registry.

The fields of the entry are those of the public registry of differential-privacy deployments, tiers 1 to 3. Of these a
release knows how it was made; what it is for, and who publishes it, people fill in.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from veilcube.analyst.report.gathering import Reported
from veilcube.privacy import GaussianEvent, Neighbours, NoiseKey, PrivacyStatement, noise_events, show_fraction
from veilcube.schema import Attribute, Ordinal, Schema, first_of, values_in_words
from veilcube.system import show_number

FILL_IN = "FILL IN"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&$])")


@dataclass(frozen=True)
class Entry:
    """One attribute in the data dictionary."""

    name: str
    kind: str
    values: str
    cells: int
    outside: str
    missing: str

    @classmethod
    def of(cls, attribute: Attribute) -> "Entry":
        """Describe an attribute."""
        policies = {"reject": "refused", "clip": "counted at the ends", "other": "counted as (other)"}
        missing = {"reject": "refused", "cell": "counted as (missing)"}
        kind = attribute.kind
        if isinstance(attribute, Ordinal) and attribute.is_date:
            kind = "date"
        return cls(
            attribute.name,
            kind,
            values_in_words(attribute),
            attribute.size,
            policies[attribute.outside],
            missing[attribute.missing],
        )


def facts_of(release: Reported) -> dict[str, str]:
    """Return how a release was made and what it cost, in words."""
    record, statement = release.record, release.privacy
    strategy = record.plan.get("strategy")
    name = strategy.get("name", "") if isinstance(strategy, Mapping) else ""
    noise = list(dict.fromkeys(_noise_words(event.noise) for event in noise_events(statement.event)))
    numbers = sum(part.values.size for part in record.measurements)
    facts = {
        "Promise": statement.short_words,
        "Protects": statement.unit.words,
        "Against": _neighbours(statement),
        "Charged": statement.short_cost
        + (f", to {statement.charged_to}" if statement.charged_to else ", to no ledger"),
        "Strategy": f"{name}; {len(record.measurements)} measurements with {numbers:,} numbers",
        "Expected error": f"{show_number(record.plan.get('expected_error', ''))} rows, of one planned question",
        "Noise": first_of(noise),
        "Proof": statement.proof,
        "Cells": f"{release.schema.cells:,}",
        "Impossible combinations": f"{len(release.schema.impossible)}",
        "Schema fingerprint": release.schema.fingerprint(),
        "Made": f"{record.created} with {record.made_with}",
        "Card written with": f"veilcube {version('veilcube')}",
    }
    return {what: said for what, said in facts.items() if said}


def _noise_words(noise: NoiseKey) -> str:
    if noise.family == GaussianEvent.family:
        return f"discrete Gaussian noise of standard deviation {show_number(float(noise.parameter) ** 0.5)}"
    return f"discrete Laplace noise of scale {show_fraction(noise.parameter)}"


def _neighbours(statement: PrivacyStatement) -> str:
    if statement.neighbours is Neighbours.REPLACE:
        return f"exchanging {statement.unit.words}; how many there are is public"
    return f"adding or removing {statement.unit.words}"


def card_of(release: Reported, title: str) -> str:
    """Return the release card as Markdown."""
    rows = [Entry.of(attribute) for attribute in release.schema]
    lines = [f"# {_plain(title)}", "", _plain(str(release.privacy)), ""]
    if release.counted is not None:
        lines += [_plain(release.counted), ""]
    lines += ["## How it was made", "", "| | |", "| --- | --- |"]
    lines += [f"| {what} | {_plain(said)} |" for what, said in facts_of(release).items()]
    lines += ["", "## Data dictionary", "", "Each row of the table was counted once, in the cell of its values.", ""]
    lines += ["| attribute | kind | values | cells | values outside | missing values |", "|---|---|---|---:|---|---|"]
    lines += [
        f"| {_plain(row.name)} | {row.kind} | {_plain(row.values)} | {row.cells:,} | {row.outside} | {row.missing} |"
        for row in rows
    ]
    lines += ["", "## How to read its numbers", "", *(f"- {line}" for line in HOW_TO_READ), ""]
    lines += ["## Registry entry", "", f"Replace what says {FILL_IN}.", "", "```yaml"]
    return "\n".join([*lines, registry_entry(release, title).rstrip(), "```", ""])


HOW_TO_READ = (
    "Every number is an estimate, with an interval that holds the true count with the stated probability. The noise "
    "was added before anything was published, so nobody can take it out.",
    "Estimates below zero, or of a fraction of a row, are right as they are: cut off, their sums would be too high.",
    "Intervals of several numbers may miss together. Of twenty 95% intervals, expect one to miss.",
    "Numbers that were picked because they stand out are less certain than their intervals say.",
    "Do not add up the ends of intervals: ask for the sum, whose interval is narrower.",
    "What is true of people like you may be seen here; whether you are in the table may not, up to the promise.",
)


def _plain(text: str) -> str:
    """Return text in which Markdown and HTML find nothing to do, in one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def registry_entry(release: Reported, title: str) -> str:
    """Return the entry for the registry of deployments as YAML; what a release cannot know says FILL IN."""
    slug = re.sub("[^a-z0-9]+", "-", title.lower()).strip("-") or "release"
    entry = {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": _deployment(release, title)}
    return "\n".join(_yaml(entry, 0)) + "\n"


def _deployment(release: Reported, title: str) -> dict[str, object]:
    statement, schema = release.privacy, release.schema
    return {
        "basic": {
            "name": title,
            "data_curators": [f"{FILL_IN}: who publishes it"],
            "intended_use": f"{FILL_IN}: what it is for",
            "data_product_type": "Summary statistics",
            "data_product_region": f"{FILL_IN}: where the people live, or whose laws apply",
            "description": f"Noisy counts over {first_of(schema.names)}, which answer any count query with an "
            "interval.",
            "publication_date": release.record.created[:10],
        },
        "dp_variant": {
            "variant_name": "Pure DP" if statement.rho is None else "Zero-concentrated DP",
            "data_domain": _domain(schema),
            "unprotected_quantities": _unprotected(statement),
        },
        "privacy_loss": _loss(statement),
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "One curator holds the table and adds the noise.",
            "actors": f"The curator sees the table. {FILL_IN}: who else does. Readers of the release see noisy counts.",
            "release_type": "One release",
            "release_type_details": f"{FILL_IN}: whether the table is used again. "
            + (f"Charged to {statement.charged_to}." if statement.charged_to else "Charged to no ledger."),
            "data_source_type": "Static",
            "access_type": "Non-interactive",
            "access_type_details": "All questions are answered from the published file.",
        },
        "accounting": {
            "post_processing": "Estimates and intervals are computed from the published numbers alone.",
            "composition": f"The whole release costs {statement.short_words}; the proof is {statement.proof}.",
        },
        "implementation": _implementation(release),
        "administrative": {
            "sources": f"{FILL_IN}: links to the release and to what describes it",
            "notes": f"Schema fingerprint {schema.fingerprint()}.",
            "registry_authors": [f"{FILL_IN}: who fills this in"],
        },
    }


def _loss(statement: PrivacyStatement) -> dict[str, object]:
    numbers = {"epsilon": float(statement.epsilon)}
    if statement.rho is not None:
        numbers |= {"delta": float(statement.delta), "rho": float(statement.rho)}
    exact = f"epsilon = {show_fraction(statement.epsilon)}" if statement.rho is None else statement.short_words
    return {
        "privacy_unit": "Row" if statement.unit.kind == "row" else "Person",
        "privacy_unit_details": f"Adjacent tables differ by {_neighbours(statement)}.",
        "privacy_parameters": numbers,
        "privacy_parameters_details": exact,
    }


def _domain(schema: Schema) -> str:
    described = "; ".join(f"{entry.name}: {entry.values}" for entry in map(Entry.of, schema))
    return f"All tables whose rows have these attributes, from public knowledge. {described}."


def _unprotected(statement: PrivacyStatement) -> str:
    if statement.neighbours is Neighbours.REPLACE:
        return f"The number of units ({statement.unit.words}) is taken as public."
    return "None; bounds and values come from public knowledge."


def _implementation(release: Reported) -> dict[str, object]:
    facts = facts_of(release)
    return {
        "preprocessing_and_hyperparameter_tuning": "The strategy was chosen from public facts and from noisy values "
        f"that are part of the release. {FILL_IN}: what was done to the table before.",
        "mechanisms": f"{facts['Strategy']}. {facts['Noise']}. Exact integer noise from a cryptographic source, added "
        f"to integer counts, so that no floating point touches private values. {release.record.made_with}.",
        "justification": f"{FILL_IN}: why this budget and this unit.",
    }


def _yaml(value: object, depth: int) -> Iterator[str]:
    """Yield lines of YAML; texts are quoted as JSON quotes them, which YAML reads."""
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, Mapping | list):
                yield f"{pad}{key}:"
                yield from _yaml(inner, depth + 1)
            else:
                yield f"{pad}{key}: {_scalar(inner)}"
    elif isinstance(value, list):
        yield from (f"{pad}- {_scalar(inner)}" for inner in value)


def _scalar(value: object) -> str:
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 takes 1e-09 for a text: it wants a point before the e.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    if not isinstance(value, str):
        return str(value)
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted) + '"'
