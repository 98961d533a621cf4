"""Sentences such as ``"A + B + C + D = passed"``: linear equalities and inequalities between named answers.

Numbers, names, ``+ - * /``, parentheses and ``= <= >=``; a name that is not one word stands between backquotes. A
sentence may be a chain, ``"0 <= F <= 10"``, which states one relation per sign. ``count(...)`` is a name too, whatever
stands between its parentheses: sentences about a release put a condition there.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from veilcube.errors import QueryError

Comparison = Literal["=", "<="]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<count>count\s*\()|(?P<name>[^\W\d]\w*)|`(?P<quoted>[^`]+)`|(?P<sign><=|>=|==|[-+*/()=<>≤≥]))",
    re.IGNORECASE,
)
# Up to the parenthesis that closes the first one; parentheses between quotes do not count.
_CONDITION_PART = re.compile(r"'[^']*'|\"[^\"]*\"|[^'\"()]+|[()]")
_COMPARISONS = {"=": "=", "==": "=", "<=": "<=", "≤": "<=", ">=": ">=", "≥": ">="}
_DEEPEST_NESTING = 50
_LONGEST_QUOTE = 100
_EXTREME = 1e9
_GREATEST_EXPONENT = 1023


@dataclass(frozen=True)
class Relation:
    """Sum of weight times answer, compared with a constant: what one sign of a sentence states."""

    weights: dict[str, float]
    comparison: Comparison
    constant: float


@dataclass(frozen=True)
class _Linear:
    """Weights of names plus a constant: the value of an expression."""

    weights: dict[str, float]
    constant: float

    def plus(self, other: "_Linear", sign: float = 1.0) -> "_Linear":
        names = self.weights | other.weights
        weights = {name: self.weights.get(name, 0.0) + sign * other.weights.get(name, 0.0) for name in names}
        return _Linear(weights, self.constant + sign * other.constant)

    def times(self, factor: float) -> "_Linear":
        weights = {name: factor * weight for name, weight in self.weights.items()}
        return _Linear(weights, factor * self.constant)


def read_sentence(sentence: str) -> tuple[Relation, ...]:
    """Return what a sentence states, one relation per comparison sign.

    >>> read_sentence("2*A - B = 3")
    (Relation(weights={'A': 2.0, 'B': -1.0}, comparison='=', constant=3.0),)
    """
    if not isinstance(sentence, str):
        raise QueryError("a constraint is a sentence such as 'A + B = 80'; give B and c for constraints in matrix form")
    return _Reader(sentence).read()


def quoted(sentence: str) -> str:
    """Return a user's sentence as an error message quotes it: in one line, not too long."""
    text = " ".join(sentence.split())
    return f"'{text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + '...'}'"


def scale_to_usual_size(weights: Iterable[float]) -> float:
    """Return a power of two that brings extreme weights near one, so that their squares can be computed with."""
    largest = max(map(abs, weights), default=0.0)
    if largest == 0 or 1 / _EXTREME <= largest <= _EXTREME:
        return 1.0
    return math.ldexp(1.0, min(-math.frexp(largest)[1], _GREATEST_EXPONENT))


class _Reader:
    """Recursive descent: sum of products of atoms on either side of each comparison sign."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence
        self._tokens = list(self._split())
        self._position = 0
        self._nesting = 0

    def read(self) -> tuple[Relation, ...]:
        left = self._sum()
        relations = []
        while self._position < len(self._tokens):
            sign = _COMPARISONS.get(self._next_sign())
            if sign is None:
                self._refuse(f"{self._here()} is not expected here (strict signs and other operators are not known)")
            self._position += 1
            right = self._sum()
            difference = left.plus(right, -1.0) if sign != ">=" else right.plus(left, -1.0)
            self._check_finite(difference)
            comparison: Comparison = "=" if sign == "=" else "<="
            difference = difference.times(scale_to_usual_size(difference.weights.values()))
            self._check_finite(difference)
            relations.append(Relation(difference.weights, comparison, -difference.constant or 0.0))
            left = right
        if not relations:
            self._refuse("it has no '=', '<=' or '>='")
        return tuple(relations)

    def _split(self) -> Iterator[tuple[str, str]]:
        text = self._sentence.rstrip()
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                self._refuse(f"{text[position:].lstrip()[:1]!r} is not part of a sentence")
            if match.lastgroup == "count":
                end = self._closing(text, match.end())
                yield "name", f"count({text[match.end() : end].strip()})"
                position = end + 1
                continue
            yield ("name" if match.lastgroup == "quoted" else match.lastgroup), match[match.lastgroup]
            position = match.end()

    def _closing(self, text: str, start: int) -> int:
        """Return where the parenthesis closes that stands before ``start``."""
        depth, position = 1, start
        while depth:
            part = _CONDITION_PART.match(text, position)
            if part is None:
                self._refuse("the parenthesis after 'count' is not closed")
            depth += {"(": 1, ")": -1}.get(part[0], 0)
            position = part.end()
        return position - 1

    def _sum(self) -> _Linear:
        total = self._product()
        while self._next_sign() in ("+", "-"):
            sign = 1.0 if self._take() == "+" else -1.0
            total = total.plus(self._product(), sign)
        return total

    def _product(self) -> _Linear:
        product = self._atom()
        while self._next_sign() in ("*", "/"):
            is_division = self._take() == "/"
            other = self._atom()
            if is_division:
                if other.weights or other.constant == 0:
                    self._refuse("it may only be divided by a number that is not zero")
                product = product.times(1 / other.constant)
            elif not other.weights:
                product = product.times(other.constant)
            elif not product.weights:
                product = other.times(product.constant)
            else:
                self._refuse("it multiplies answers with each other, and only linear constraints are known")
        return product

    def _atom(self) -> _Linear:
        sign = 1.0
        while self._next_sign() in ("+", "-"):
            sign = -sign if self._take() == "-" else sign
        if self._next_sign() == "(":
            return self._bracket().times(sign)
        if self._position == len(self._tokens):
            self._refuse("it ends where a name or a number is missing")
        kind, text = self._tokens[self._position]
        if kind == "sign":
            self._refuse(f"{self._here()} stands where a name or a number is missing")
        self._position += 1
        atom = _Linear({}, float(text)) if kind == "number" else _Linear({text: 1.0}, 0.0)
        return atom.times(sign)

    def _bracket(self) -> _Linear:
        self._take()
        self._nesting += 1
        if self._nesting > _DEEPEST_NESTING:
            self._refuse("its parentheses are nested too deeply")
        inside = self._sum()
        if self._next_sign() != ")":
            self._refuse("a parenthesis is not closed")
        self._take()
        self._nesting -= 1
        return inside

    def _next_sign(self) -> str:
        if self._position == len(self._tokens):
            return ""
        kind, text = self._tokens[self._position]
        return text if kind == "sign" else ""

    def _take(self) -> str:
        text = self._tokens[self._position][1]
        self._position += 1
        return text

    def _here(self) -> str:
        text = self._tokens[self._position][1]
        return repr(text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "...")

    def _check_finite(self, value: _Linear) -> None:
        if not all(map(math.isfinite, (*value.weights.values(), value.constant))):
            self._refuse("one of its numbers is too large")

    def _refuse(self, reason: str) -> NoReturn:
        raise QueryError(
            f"the constraint {quoted(self._sentence)} cannot be read: {reason}; "
            "write it like 'A + 2*B = 80' or 'A <= passed', other names between backquotes"
        )
