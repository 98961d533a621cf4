"""Facts about true answers: sentences or matrices in, rows of one linear system out.

Row j with weights b_j says b_j'μ = c_j or b_j'μ <= c_j of the true answers μ. B of the paper has these rows as columns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.analyst.refine.facts.sentences import quoted, read_sentence, scale_to_usual_size
from veilcube.errors import QueryError
from veilcube.system import Floats, read_choice, read_numbers as read_any_numbers

FactSource = Literal["unstated", "public", "exact private statistic"]

_SOURCES = ("unstated", "public", "exact private statistic")


@dataclass(frozen=True)
class Fact:
    """One sentence that is known to be true, and where it is known from.

    ``"public"``: it would be the same whatever the table held. ``"exact private statistic"``: somebody read it off the
    table, without noise. Where the source is unstated, ``refinement_privacy`` takes it as read off the table.
    """

    sentence: str
    source: FactSource = "unstated"

    def __post_init__(self) -> None:
        read_sentence(self.sentence)
        read_choice(self.source, "the source of a fact", _SOURCES)


Constraints = str | Fact | Iterable[str | Fact]


@dataclass(frozen=True, eq=False)
class FactSystem:
    """Facts as rows: ``weights`` (facts, answers), ``constants`` and ``is_equality`` (facts,), and their sentences."""

    weights: Floats
    constants: Floats
    is_equality: NDArray[np.bool_]
    facts: tuple[Fact, ...]

    def __len__(self) -> int:
        return len(self.facts)

    def take(self, chosen: ArrayLike) -> "FactSystem":
        """Return only the chosen facts: indices or a boolean mask."""
        index = np.arange(len(self.facts))[np.asarray(chosen)]
        facts = tuple(self.facts[position] for position in index)
        return FactSystem(self.weights[index], self.constants[index], self.is_equality[index], facts)

    def join(self, other: "FactSystem") -> "FactSystem":
        """Return these facts and then those of another system about the same answers."""
        return FactSystem(
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.constants, other.constants]),
            np.concatenate([self.is_equality, other.is_equality]),
            self.facts + other.facts,
        )

    def quote(self, chosen: Iterable[int]) -> str:
        """Return the sentences of the chosen facts as an error message lists them, each once."""
        return " and ".join(dict.fromkeys(quoted(self.facts[index].sentence) for index in chosen))


def read_facts(
    names: Sequence[str],
    constraints: Constraints | None,
    matrix: ArrayLike | None,
    constants: ArrayLike | None,
    *,
    needs_constants: bool = True,
    source: FactSource = "unstated",
) -> FactSystem:
    """Return the facts of sentences and of a matrix B with B'μ = c, in this order.

    Where constants do not matter (the privacy of a refinement), c may be left out; the sentences then call them c1, c2.
    ``source`` is that of facts that do not tell their own.
    """
    parts = []
    if constraints is not None:
        parts.append(_read_sentences(names, _as_facts(constraints, source)))
    if matrix is not None:
        parts.append(_read_matrix(names, matrix, constants, needs_constants, source))
    elif constants is not None:
        raise QueryError("c was given without B; give both, with one column of B and one entry of c per fact")
    return FactSystem(
        np.concatenate([np.empty((0, len(names))), *(part.weights for part in parts)]),
        np.concatenate([np.empty(0), *(part.constants for part in parts)]),
        np.concatenate([np.empty(0, dtype=bool), *(part.is_equality for part in parts)]),
        tuple(fact for part in parts for fact in part.facts),
    )


def _read_sentences(names: Sequence[str], given: Sequence[Fact]) -> FactSystem:
    position = {name: index for index, name in enumerate(names)}
    rows, constants, is_equality, facts = [], [], [], []
    for fact in given:
        for relation in read_sentence(fact.sentence):
            row = np.zeros(len(names))
            for name, weight in relation.weights.items():
                if name not in position:
                    raise QueryError(
                        f"the constraint {quoted(fact.sentence)} names '{name}', which is none of the answers; "
                        f"use {_some(names)}"
                    )
                row[position[name]] = weight
            rows.append(row)
            constants.append(relation.constant)
            is_equality.append(relation.comparison == "=")
            facts.append(fact)
    weights = np.array(rows).reshape(len(rows), len(names))
    return FactSystem(weights, np.array(constants, dtype=np.float64), np.array(is_equality, dtype=bool), tuple(facts))


def _as_facts(constraints: Constraints, source: FactSource) -> list[Fact]:
    if isinstance(constraints, str | Fact):
        constraints = [constraints]
    if not isinstance(constraints, Iterable) or isinstance(constraints, np.ndarray):
        raise QueryError("constraints are sentences such as 'A + B = 80'; give B and c for constraints in matrix form")
    return [fact if isinstance(fact, Fact) else Fact(fact, source) for fact in constraints]


def _read_matrix(
    names: Sequence[str], matrix: ArrayLike, constants: ArrayLike | None, needs_constants: bool, source: FactSource
) -> FactSystem:
    columns = read_numbers(matrix, "B")
    columns = columns.reshape(-1, 1) if columns.ndim == 1 else columns
    if columns.ndim != 2 or columns.shape[0] != len(names):
        raise QueryError(
            f"B must have one row per answer ({len(names)}) and one column per fact, not the shape {columns.shape}"
        )
    count = columns.shape[1]
    if constants is None and needs_constants:
        raise QueryError("B was given without c; give one entry of c per column of B, so that B'μ = c")
    known = np.zeros(count) if constants is None else np.atleast_1d(read_numbers(constants, "c"))
    if known.shape != (count,):
        raise QueryError(f"c must have one entry per column of B ({count}), not the shape {known.shape}")
    ends = [f"c{index + 1}" if constants is None else f"{known[index]:.12g}" for index in range(count)]
    facts = tuple(Fact(f"{_written(names, row)} = {end}", source) for row, end in zip(columns.T, ends, strict=True))
    rows = columns.T.copy()
    if needs_constants:
        factors = np.array([scale_to_usual_size(row) for row in rows.tolist()]).reshape(count)
        rows, known = rows * factors[:, np.newaxis], known * factors
    return FactSystem(rows, known, np.ones(count, dtype=bool), facts)


def read_numbers(numbers: ArrayLike, name: str) -> Floats:
    """Return an array of finite numbers, or refuse it under its parameter's name."""
    array = read_any_numbers(numbers, name)
    if not np.isfinite(array).all():
        raise QueryError(f"{name} must hold finite numbers; it has a NaN or an infinite entry")
    return array


def _written(names: Sequence[str], row: Floats) -> str:
    terms = [_term(float(row[index]), names[index]) for index in map(int, np.flatnonzero(row))]
    text = "".join(terms) or " + 0"
    return text[3:] if text.startswith(" + ") else f"-{text[3:]}"


def _term(weight: float, name: str) -> str:
    size = "" if abs(weight) == 1 else f"{abs(weight):.12g}*"
    return f" {'-' if weight < 0 else '+'} {size}{name if name.isidentifier() else f'`{name}`'}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
