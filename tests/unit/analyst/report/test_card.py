"""The release card and the entry for the registry of deployments."""

import re
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
import yaml

import veilcube as vc
from support.releases import gaussian_release_of, release_of

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 0, 99, outside="clip", missing="cell"),
        vc.Nominal(
            "job|<b>\n", hierarchy={"Care": ["Nurse: x", "# Aide"], "Law": ["- Judge", '"q"\\']}, outside="other"
        ),
        vc.Ordinal("pay", edges=[0, 10, 20]),
    ],
    impossible=[{"age": (0, 10), "pay": (10, 20)}],
)
RELEASE = release_of(SCHEMA, np.ones(SCHEMA.shape, dtype=int), epsilon="1/3", seed=1)

# The fields of the public registry of deployments (July 2026), by tier, and the words that it allows.
TEXT = {"type": "string", "minLength": 1}
FIELDS: dict[str, dict[str, Any]] = {
    "basic": {
        **dict.fromkeys(["name", "intended_use", "data_product_region", "description"], TEXT),
        "data_curators": {"type": "array", "items": TEXT, "minItems": 1},
        "data_product_type": {"enum": ["Summary statistics", "Dataset", "Synthetic data"]},
        "publication_date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
    },
    "dp_variant": {
        "variant_name": {"enum": ["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]},
        "data_domain": TEXT,
        "unprotected_quantities": TEXT,
    },
    "privacy_loss": {
        "privacy_unit": TEXT,
        "privacy_unit_details": TEXT,
        "privacy_parameters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"epsilon": {"type": "number"}, "delta": {"type": "number"}, "rho": {"type": "number"}},
        },
        "privacy_parameters_details": TEXT,
    },
    "deployment_model": {
        "model_name": {"enum": ["Local", "Central", "Shuffle", "Federated"]},
        "release_type": {"enum": ["One release", "Many releases"]},
        "data_source_type": {"enum": ["Static", "Dynamic"]},
        "access_type": {"enum": ["Interactive", "Non-interactive"]},
        **dict.fromkeys(["model_name_details", "actors", "release_type_details", "access_type_details"], TEXT),
    },
    "accounting": {"post_processing": TEXT, "composition": TEXT},
    "implementation": dict.fromkeys(["preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"], TEXT),
    "administrative": {
        "sources": TEXT,
        "notes": TEXT,
        "registry_authors": {"type": "array", "items": TEXT, "minItems": 1},
    },
}
REGISTRY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["url_slug", "status", "tier", "deployment"],
    "properties": {
        "url_slug": {"type": "string", "pattern": "^[a-z0-9-]+$"},
        "status": {"enum": ["Draft"]},
        "tier": {"enum": [1, 2, 3]},
        "deployment": {
            "type": "object",
            "additionalProperties": False,
            "required": list(FIELDS),
            "properties": {
                name: {"type": "object", "additionalProperties": False, "required": list(own), "properties": own}
                for name, own in FIELDS.items()
            },
        },
    },
}


def entry_of(release: Any, title: str = "Visits 2024") -> dict[str, Any]:
    entry = yaml.safe_load(release.registry_entry(title))
    jsonschema.validate(entry, REGISTRY)
    return entry["deployment"]  # type: ignore[no-any-return]


def test_the_entry_has_every_field_of_the_registry() -> None:
    found = entry_of(RELEASE)
    assert found["dp_variant"]["variant_name"] == "Pure DP"
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": pytest.approx(1 / 3)}
    assert found["basic"]["publication_date"] == "2026-01-01"
    assert found["basic"]["data_curators"][0].startswith("FILL IN")


def test_gaussian_noise_and_persons_are_told() -> None:
    gaussian = gaussian_release_of(SCHEMA, np.ones(SCHEMA.shape, dtype=int), rho="1/8")
    loss = entry_of(gaussian)["privacy_loss"]["privacy_parameters"]
    assert loss["rho"] == 0.125
    assert loss["delta"] == 1e-9
    assert entry_of(gaussian)["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    schema = vc.Schema([vc.Ordinal("age", 0, 9)])
    rows = pa.table({"id": [1, 1], "age": [1, 2]})
    found = entry_of(vc.release(rows, schema=schema, person="id", max_rows=2, neighbours="replace"))
    assert found["privacy_loss"]["privacy_unit"] == "Person"
    assert "exchanging one person" in found["privacy_loss"]["privacy_unit_details"]
    assert "public" in found["dp_variant"]["unprotected_quantities"]


@pytest.mark.parametrize("title", ["a: b # c", "'q' \"d\" \\", "tab\t\x7f\x1b[31m", "ü 😀", "- x", "???", "yes"])
def test_any_title_reads_back_from_the_yaml(title: str) -> None:
    assert entry_of(RELEASE, title)["basic"]["name"] == title


def test_the_card_tells_promise_price_and_dictionary() -> None:
    card = RELEASE.card("Visits")
    assert card.startswith("# Visits\n")
    plain = card.replace("\\", "")
    assert str(RELEASE.privacy) in plain
    assert "| Charged | epsilon of 1/3, to no ledger |" in plain or "epsilon of 0.333333" in plain
    assert SCHEMA.fingerprint() in card
    assert "| Impossible combinations | 1 |" in card
    assert "| age | ordinal | 0 to 99 | 101 | counted at the ends | counted as (missing) |" in plain
    assert "| pay | ordinal | bins between 0, 10, 20 | 2 | refused | refused |" in plain
    assert "FILL IN" in card


def test_names_cannot_break_the_card() -> None:
    table = RELEASE.card().split("## Data dictionary")[1].split("## How to read")[0].strip().splitlines()
    rows = [line for line in table if line.startswith("|")]
    assert len(rows) == 2 + len(SCHEMA)
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 7 for row in rows)
    assert not re.search(r"(?<!\\)<", "\n".join(rows))
