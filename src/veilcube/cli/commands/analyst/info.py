"""``veilcube info``: what a release file holds and what it promises."""

from collections.abc import Mapping
from typing import Any

from veilcube.analyst import Release
from veilcube.cli.shared import (
    JsonFlag,
    ReleaseFile,
    describe_schema,
    open_release_file,
    print_json,
    say,
    show_number,
    show_schema,
)
from veilcube.planner import Marginals

LEAST_ERROR_SHOWN = 0.001
_FACTS_SHOWN = 10
_SOURCE_WORDS = {
    "unstated": "its source is not stated",
    "public": "public",
    "exact private statistic": "read off the private table",
}


def info(file: ReleaseFile, as_json: JsonFlag = False) -> None:
    """Show the schema, the privacy statement and the plan of a release."""
    release = open_release_file(file)
    beyond = release.beyond_cap()
    if as_json:
        print_json(
            {
                "file": str(file),
                "bytes": file.stat().st_size,
                "created": release.record.created,
                "made_with": release.record.made_with,
                "schema": describe_schema(release.schema),
                "privacy": release.privacy.to_dict(),
                "counted": release.counted,
                "beyond_cap": None if beyond is None else beyond.to_dict(),
                "refinement": release.refinement,
                "plan": release.plan,
                "check": release.check().to_dict(),
            }
        )
        return
    show_schema(release.schema)
    say("", str(release.privacy))
    if release.counted is not None:
        say(release.counted)
    if beyond is not None:
        say(beyond.words)
    if release.refinement is not None:
        say("", *_refinement_words(release.refinement))
    say("", _plan_words(release))
    say(f"Check: {release.check().words}")
    say(f"Made {release.record.created} with {release.record.made_with}; {release.schema.cells:,} cells.")


def _refinement_words(refinement: Mapping[str, Any]) -> list[str]:
    """Return the facts with where they are known from, and whether they fit."""
    facts = [f"'{fact['sentence']}' ({_SOURCE_WORDS[fact['source']]})" for fact in refinement["facts"]]
    more = f"; and {len(facts) - _FACTS_SHOWN:,} more" if len(facts) > _FACTS_SHOWN else ""
    return [f"Refined with {'; '.join(facts[:_FACTS_SHOWN])}{more}.", refinement["fact_test"]["words"]]


def _plan_words(release: Release) -> str:
    strategy, error = release.plan.get("strategy"), release.plan.get("expected_error")
    name = strategy.get("name", "?") if isinstance(strategy, Mapping) else "?"
    asked = "a cell of its tables" if name == Marginals().name else "a random range count"
    return f"Strategy {name}; expected error of {asked}: {_show_error(error)}."


def _show_error(error: object) -> str:
    # An epsilon so large that nothing is left to hide makes errors of 1e-40, whose digits mean nothing.
    if isinstance(error, int | float) and 0 <= error < LEAST_ERROR_SHOWN:
        return f"below {LEAST_ERROR_SHOWN}"
    return show_number(error)
