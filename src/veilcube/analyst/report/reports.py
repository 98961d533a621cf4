"""Reports and release cards of whatever answers as a release does."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from veilcube.analyst.report.card import HOW_TO_READ, Entry, card_of, facts_of, registry_entry
from veilcube.analyst.report.charts import Figures, rows_of, rows_of_two
from veilcube.analyst.report.gathering import (
    MOST_ATTRIBUTES,
    Reported,
    Shown,
    ShownPair,
    read_pairs,
    shown_attributes,
    shown_pairs,
    telling_pairs,
)
from veilcube.errors import QueryError, ReleaseFileError
from veilcube.query import Answer, Answers, read_confidence
from veilcube.system import (
    Chart,
    Rows,
    Spec,
    atomic_file,
    fill_page,
    load_extras,
    read_path,
    read_text,
    show_confidence,
    show_interval,
    show_number,
    spec_of,
)

REPORT_FILES = ("report.html", "report.png", "card.md", "registry.yaml")
TITLE = "Differentially private counts"
_WIDTH = 480
_LONGEST_TITLE = 120


class Reports:
    """A page, a picture and a card that tell what a release holds."""

    def card(self: Reported, title: str = TITLE) -> str:
        """Return the release card as Markdown: the promise, how it was made, the data dictionary, a registry entry."""
        return card_of(self, _read_title(title))

    def registry_entry(self: Reported, title: str = TITLE) -> str:
        """Return an entry for the public registry of deployments as YAML; what only people know says FILL IN."""
        return registry_entry(self, _read_title(title))

    def report(
        self: Reported,
        folder: str | Path,
        title: str = TITLE,
        *,
        by: Sequence[str] | None = None,
        pairs: Sequence[Sequence[str]] | None = None,
        queries: Sequence[str] = (),
        confidence: float = 0.95,
    ) -> list[Path]:
        """Write report.html, report.png, card.md and registry.yaml into a folder, and return their paths.

        Charts are of the attributes ``by`` (all, up to 24) and of ``pairs`` of them (the six that depend most on each
        other); ``queries`` are answered in a table. Needs the extra ``report``.
        """
        target, named = read_path(folder, "the folder of a report", ReleaseFileError), _read_title(title)
        read_confidence(confidence)
        altair, converter = load_extras()
        names = self.schema.names if by is None else [self.schema.names[axis] for axis in self.schema.axes(by)]
        asked = None if pairs is None else read_pairs(self.schema, pairs)
        _make_folder(target)
        gathered = _Gathered(self, names, asked, queries, confidence)
        figures = Figures(altair, self.privacy.short_words, confidence)
        specs = {name: spec_of(chart) for name, chart in gathered.charts(figures).items()}
        page = gathered.page(specs, named).encode()
        poster = _poster(list(specs.values()), named, str(self.privacy))
        picture = converter.vegalite_to_png(poster | {"datasets": gathered.data}, scale=2)
        drawn = _write(target, dict(zip(REPORT_FILES, (page, picture), strict=False)))
        return drawn + _write(target, _cards(self, named))

    def write_card(self: Reported, folder: str | Path, title: str = TITLE) -> list[Path]:
        """Write card.md and registry.yaml into a folder, and return their paths."""
        target, named = read_path(folder, "the folder of a card", ReleaseFileError), _read_title(title)
        _make_folder(target)
        return _write(target, _cards(self, named))


class _Gathered:
    """Everything that a page shows, asked for once."""

    def __init__(
        self,
        release: Reported,
        names: Sequence[str],
        pairs: Sequence[tuple[str, str]] | None,
        queries: Sequence[str],
        confidence: float,
    ) -> None:
        self._release, self._confidence = release, confidence
        self._left_out = max(len(names) - MOST_ATTRIBUTES, 0)
        self._questions = [(query, _one(release, query, confidence)) for query in queries]
        self._total = _one(release, None, confidence)
        self._shown = shown_attributes(release, names[:MOST_ATTRIBUTES], confidence)
        chosen = telling_pairs(release, names[:MOST_ATTRIBUTES]) if pairs is None else pairs
        self._pairs = shown_pairs(release, chosen, confidence)

    @property
    def data(self) -> dict[str, Rows]:
        """The data of all charts, by the names that these call them by."""
        singles = {f"one{k}": rows_of(one.view, one.answers) for k, one in enumerate(self._shown)}
        return singles | {
            f"two{k}": rows_of_two(pair.across, pair.upwards, pair.answers) for k, pair in enumerate(self._pairs)
        }

    def charts(self, figures: Figures) -> dict[str, Chart]:
        """Return all charts by the names of their data."""
        found = {}
        for k, one in enumerate(self._shown):
            draw = figures.bars if one.view.kind == "names" else figures.along
            found[f"one{k}"] = draw(one.view, f"one{k}", width=_WIDTH)
        for k, pair in enumerate(self._pairs):
            found[f"two{k}"] = figures.heatmap(pair.across, pair.upwards, f"two{k}", width=_WIDTH)
        return found

    def page(self, specs: Mapping[str, Spec], title: str) -> str:
        """Return the page."""
        release = self._release
        singles = [self._single(f"one{k}", one) for k, one in enumerate(self._shown)]
        doubles = [self._double(f"two{k}", pair) for k, pair in enumerate(self._pairs)]
        left_out = f"{self._left_out} more attributes are in the data dictionary only. " if self._left_out else ""
        fields = {
            "axes": escape(" × ".join(release.schema.names)),
            "cells": f"{release.schema.cells:,}",
            "privacy": escape(str(release.privacy)),
            "counted": "" if release.counted is None else f'<p class="promise">{escape(release.counted)}</p>',
            "questions": self._answered(),
            "how_to_read": "\n".join(f"<li>{escape(line)}</li>" for line in HOW_TO_READ),
            "singles": "\n".join(singles),
            "doubles": "\n".join(doubles),
            "facts": _table((), list(facts_of(release).items()), is_words=True),
            "dictionary": _dictionary(release),
            "registry": escape(registry_entry(release, title)),
            "left_out": left_out,
        }
        return fill_page(Path(__file__).with_name("report_template.html"), title, specs, self.data, fields)

    def _answered(self) -> str:
        rows = [("all rows", self._total), *self._questions]
        head = ("question", "estimate", f"{show_confidence(self._confidence)} interval")
        return _table(head, [(query, *_numbers(answer)) for query, answer in rows])

    def _single(self, name: str, one: Shown) -> str:
        rows = [(label, *_numbers(answer)) for label, answer in zip(one.view.labels, one.answers, strict=True)]
        rows += [(label, *_numbers(answer)) for label, answer in one.stray]
        beside = "".join(
            f"<p class='facts'>{escape(label)}: {escape(_said(answer))}</p>" for label, answer in one.stray
        )
        return self._card(name, (one.view.name, "estimate", "interval"), rows, beside)

    def _double(self, name: str, pair: ShownPair) -> str:
        both = [(across, upwards) for across in pair.across.labels for upwards in pair.upwards.labels]
        rows = [(*labels, *_numbers(answer)) for labels, answer in zip(both, pair.answers, strict=True)]
        return self._card(name, (pair.across.name, pair.upwards.name, "estimate", "interval"), rows, "")

    def _card(self, name: str, head: Sequence[str], rows: Sequence[Sequence[str]], beside: str) -> str:
        return (
            f'<div class="card"><div id="{name}"></div>{beside}'
            f"<details><summary>as a table</summary>{_table(head, rows)}</details></div>"
        )


def _numbers(answer: Answer) -> tuple[str, str]:
    return show_number(round(answer.value, 1)), show_interval(round(answer.low, 1), round(answer.high, 1))


def _said(answer: Answer) -> str:
    value, interval = _numbers(answer)
    return f"{value} ({interval})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, is_words: bool = False) -> str:
    def cells(kind: str, row: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in row) + "</tr>"

    top = f"<thead>{cells('th', head)}</thead>" if head else ""
    kind = ' class="words"' if is_words else ""
    return f"<table{kind}>{top}<tbody>{''.join(cells('td', row) for row in rows)}</tbody></table>"


def _dictionary(release: Reported) -> str:
    head = ("attribute", "kind", "values", "cells", "values outside", "missing values")
    entries = [Entry.of(attribute) for attribute in release.schema]
    rows = [(one.name, one.kind, one.values, f"{one.cells:,}", one.outside, one.missing) for one in entries]
    return _table(head, rows, is_words=True)


def _poster(specs: Sequence[Spec], title: str, privacy: str) -> Spec:
    """Return all charts in one picture."""
    lines = _folded(f"{privacy.split('. ', maxsplit=1)[0]}.")
    sizes = {"fontSize": 22, "subtitleFontSize": 13}
    heading = {"text": title, "subtitle": lines, "offset": 24, "anchor": "start", **sizes}
    bare = [{name: part for name, part in spec.items() if name not in ("$schema", "config")} for spec in specs]
    apart = {"scale": {"color": "independent", "x": "independent", "y": "independent"}}
    columns = [{"vconcat": bare[start::2], "spacing": 44, "resolve": apart} for start in (0, 1) if bare[start::2]]
    return {
        "$schema": specs[0]["$schema"],
        "config": specs[0]["config"],
        "title": heading,
        "hconcat": columns,
        "spacing": 56,
        "resolve": apart,
        "padding": 28,
    }


def _folded(text: str, width: int = 130) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _one(release: Reported, query: str | None, confidence: float) -> Answer:
    answer = release.count(query, confidence=confidence)
    if isinstance(answer, Answers):
        raise QueryError("a question of a report is one count, so leave out GROUP BY; charts show groups")
    return answer


def _read_title(title: object) -> str:
    return read_text(title, "the title")[:_LONGEST_TITLE]


def _cards(release: Reported, title: str) -> dict[str, bytes]:
    texts = card_of(release, title), registry_entry(release, title)
    return dict(zip(REPORT_FILES[2:], map(str.encode, texts), strict=True))


def _write(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    for name, content in contents.items():
        with atomic_file(folder / name) as stream:
            stream.write(content)
    return [folder / name for name in contents]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise ReleaseFileError(f"cannot make the folder {folder} ({reason}); choose another one") from problem
