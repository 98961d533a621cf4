"""``veilcube refine``: make the answers of a release obey known facts, and name the facts that break its privacy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias, cast, get_args

import typer

from veilcube.analyst import (
    Fact,
    FactSource,
    RefinedRelease,
    RefinementPrivacy,
    Release,
    read_sentence,
    refine_release,
    refinement_privacy,
)
from veilcube.cli.commands.analyst.query import Queries
from veilcube.cli.shared import (
    Confidence,
    Force,
    JsonFlag,
    ReleaseFile,
    open_release_file,
    print_json,
    require_free,
    require_parquet,
    say,
    show_confidence,
    show_interval,
    show_number,
    show_table,
)
from veilcube.errors import QueryError
from veilcube.query import Answer
from veilcube.system import read_text_file

FactTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--fact",
        metavar="SENTENCE",
        help='A known fact such as "total = 32561" or "count(sex = \'Female\') = 10771"; may be repeated.',
    ),
]
FactsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--facts",
        metavar="FILE",
        help="A file of facts, one a line; after a line with public in square brackets they are known from there.",
    ),
]
Source: TypeAlias = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="NAME",
        help="Where the facts of --fact are known from: unstated, public, or exact private statistic.",
    ),
]
_SOURCES = get_args(FactSource)
_QUESTIONS_SHOWN = 20


def refine(
    file: ReleaseFile,
    queries: Queries = None,
    facts: FactTexts = None,
    facts_file: FactsFile = None,
    source: Source = "unstated",
    check: Annotated[
        bool, typer.Option("--check", help="Only tell which facts are dangerous to privacy, and why.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Save the refined release as a .veil file, or write its count of every cell to a Parquet file.",
        ),
    ] = None,
    kept_rows: Annotated[
        bool,
        typer.Option("--kept-rows", help="Where a cap per person leaves rows out: a total is of the kept rows alone."),
    ] = False,
    confidence: Confidence = 0.95,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Make the answers of a release obey known facts.

    Shows the counts that the facts name, or those you ask for, before and after. Facts that were read off the private
    table give away what the release hides; --check tells which do.
    """
    known = [Fact(text, _read_source(source)) for text in facts or []] + _read_file(facts_file)
    if not known:
        raise QueryError('there is no fact to refine with; give one by --fact "total = 32561", or a file by --facts')
    release = open_release_file(file)
    verdict = refinement_privacy(known, release=release)
    if check:
        _tell_verdict(file, known, verdict, as_json=as_json)
        return
    if out is not None:
        if not _is_release(out):
            require_parquet(out)
        require_free(out, overwrite=force)
    refined = refine_release(release, known, kept_rows=kept_rows)
    questions = list(queries or _questions_of(known))
    pairs = [(_ask(release, text, confidence), _ask(refined, text, confidence)) for text in questions]
    if out is not None:
        _write(refined, out, confidence)
    refined.fact_test.warn()
    if as_json:
        results = [
            {"query": text, "before": _facts_of(before), "after": _facts_of(after)}
            for text, (before, after) in zip(questions, pairs, strict=True)
        ]
        print_json(
            _described(file, known, verdict)
            | {"results": results, "out": None if out is None else str(out)}
            | {"redundant": [fact.sentence for fact in refined.redundant]}
            | {"fact_test": refined.fact_test.to_dict()}
            | {"confidence": confidence, "privacy": refined.privacy.to_dict(), "counted": refined.counted}
        )
        return
    _show(questions, pairs, confidence)
    _say_rest(refined, verdict, out)


def _say_rest(refined: RefinedRelease, verdict: RefinementPrivacy, out: Path | None) -> None:
    if refined.redundant:
        say("", "These facts follow from the others: " + "; ".join(fact.sentence for fact in refined.redundant))
    say("", str(refined.privacy))
    if refined.counted is not None:
        say(refined.counted)
    if not verdict.is_post_processing:
        say("Some facts may have been read off the private table; run it with --check to see what that would mean.")
    if out is not None:
        held = "the refined release" if _is_release(out) else f"one row for each of {refined.schema.cells:,} cells"
        say(f"Written to {out}: {held}.")


def _is_release(out: Path) -> bool:
    return out.suffix.lower() == ".veil"


def _write(refined: RefinedRelease, out: Path, confidence: float) -> None:
    if _is_release(out):
        refined.save(out)
    else:
        refined.to_parquet(out, confidence=confidence)


def _tell_verdict(file: Path, facts: Sequence[Fact], verdict: RefinementPrivacy, *, as_json: bool) -> None:
    if as_json:
        print_json(_described(file, facts, verdict))
        return
    say(*verdict.explanation)
    unstated = [fact for fact in facts if fact.source == "unstated"]
    if unstated and not verdict.is_post_processing:
        say(
            "",
            "A fact whose source is not stated counts as read off the private table. If it is known from elsewhere and "
            "would be the same whoever is in the table, say so: --source public.",
        )


def _described(file: Path, facts: Sequence[Fact], verdict: RefinementPrivacy) -> dict[str, object]:
    return {
        "file": str(file),
        "facts": [{"sentence": fact.sentence, "source": fact.source} for fact in facts],
        "check": {
            "is_post_processing": verdict.is_post_processing,
            "dangerous": list(verdict.dangerous),
            "epsilon": verdict.epsilon,
            "loss": verdict.loss,
            "rho": verdict.rho,  # the loss under its earlier name
            "explanation": list(verdict.explanation),
        },
    }


def _read_source(source: str) -> FactSource:
    if source not in _SOURCES:
        raise QueryError(f"the source of a fact must be one of {', '.join(_SOURCES)}, not '{source}'")
    return cast("FactSource", source)


def _read_file(path: Path | None) -> list[Fact]:
    if path is None:
        return []
    try:
        lines = read_text_file(path, "utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise QueryError(f"the facts of {path} cannot be read; name a text file with one fact a line") from problem
    source, found = _read_source("unstated"), []
    for line in map(str.strip, lines):
        if line.startswith("[") and line.endswith("]"):
            source = _read_source(line[1:-1].strip())
        elif line and not line.startswith("#"):
            found.append(Fact(line, source))
    return found


def _questions_of(facts: Sequence[Fact]) -> list[str]:
    """Return the counts that the facts name, as questions to a release."""
    names = (name for fact in facts for relation in read_sentence(fact.sentence) for name in relation.weights)
    texts = ("SELECT COUNT(*)" if name == "total" else name[len("count(") : -1] for name in dict.fromkeys(names))
    return list(texts)[:_QUESTIONS_SHOWN]


def _ask(release: Release, text: str, confidence: float) -> Answer:
    answer = release.count(text, confidence=confidence)
    if not isinstance(answer, Answer):
        raise QueryError("GROUP BY gives many answers; ask for one count at a time, or write all cells with --out")
    return answer


def _facts_of(answer: Answer) -> dict[str, object]:
    return {name: getattr(answer, name) for name in ("value", "low", "high", "stddev")}


def _show(questions: Sequence[str], pairs: Sequence[tuple[Answer, Answer]], confidence: float) -> None:
    interval = f"{show_confidence(confidence)} interval"
    columns = ("query", "released", f"{interval} ", "refined", interval)
    rows = [
        (
            text,
            show_number(before.value),
            show_interval(before.low, before.high),
            show_number(after.value),
            show_interval(after.low, after.high),
        )
        for text, (before, after) in zip(questions, pairs, strict=True)
    ]
    show_table(columns, rows, numbers=columns[1:])
