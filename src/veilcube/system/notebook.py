"""What notebooks show of an object: a small HTML table, in which nothing that a name or a label holds is markup."""

from collections.abc import Iterable, Sequence
from html import escape

_RIGHT = "text-align:right"
_LEFT = "text-align:left"


def as_html(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], note: str = "", *, numbers: Sequence[str] = ()
) -> str:
    """Return a table; the columns in ``numbers`` stand on the right.

    >>> "&lt;b&gt;" in as_html("<b>", ["x"], [["<i>"]]) and "<i>" not in as_html("", ["x"], [["<i>"]])
    True
    """
    styles = [_RIGHT if name in numbers else _LEFT for name in head]
    lines = [f'<table><caption style="{_LEFT}">{escape(caption)}</caption>']
    if any(head):
        lines.append(f"<thead>{_row('th', head, styles)}</thead>")
    lines += ["<tbody>", *(_row("td", row, styles) for row in rows), "</tbody></table>"]
    return "".join(lines) + (f"<p>{escape(note)}</p>" if note else "")


def _row(kind: str, cells: Sequence[object], styles: Sequence[str]) -> str:
    written = (
        f'<{kind} style="{style}">{escape(str(cell))}</{kind}>' for cell, style in zip(cells, styles, strict=True)
    )
    return f"<tr>{''.join(written)}</tr>"
