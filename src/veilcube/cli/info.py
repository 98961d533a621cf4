"""``veilcube info``: what a release file holds and what it promises."""

from collections.abc import Mapping

from veilcube.analyst import Release, open_release
from veilcube.cli.options import JsonFlag, ReleaseFile
from veilcube.cli.output import print_json, say, show_number
from veilcube.cli.schema import describe_schema, show_schema


def info(file: ReleaseFile, as_json: JsonFlag = False) -> None:
    """Show the schema, the privacy statement and the plan of a release."""
    release = open_release(file)
    if as_json:
        print_json(
            {
                "file": str(file),
                "bytes": file.stat().st_size,
                "created": release.record.created,
                "made_with": release.record.made_with,
                "schema": describe_schema(release.schema),
                "privacy": release.privacy.to_dict(),
                "plan": release.plan,
            }
        )
        return
    show_schema(release.schema)
    say("", str(release.privacy), "", _plan_words(release))
    say(f"Made {release.record.created} with {release.record.made_with}; {release.schema.cells:,} cells.")


def _plan_words(release: Release) -> str:
    strategy, error = release.plan.get("strategy"), release.plan.get("expected_error")
    name = strategy.get("name", "?") if isinstance(strategy, Mapping) else "?"
    return f"Strategy {name}; expected error of a random range count: {show_number(error)}."
