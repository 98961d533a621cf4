"""Faults of everything around the noise: domains, branches, defaults, caps, types, accounts."""

import math
from typing import Any

from audit.faults.exhibit import BY_ALL, Exhibit

CELLS = ["a", "b", "c"]


def number_of_rows_by_default(records: list[Any], noise: Any) -> list[int]:
    """The number of bins has a default that follows from the number of rows."""
    bins = 1 + math.isqrt(len(records))
    counts = [0] * bins
    for record in records:
        counts[CELLS.index(record) % bins] += 1
    return noise.add(counts, scale=1)


def number_of_bins_given(records: list[Any], noise: Any) -> list[int]:
    return noise.add([records.count(cell) for cell in CELLS], scale=1)


def domain_from_the_data(records: list[Any], noise: Any) -> dict[str, int]:
    """Cells are those that occur."""
    return {cell: noise.add(records.count(cell), scale=1) for cell in sorted(set(records))}


def branch_on_the_data(records: list[Any], noise: Any) -> int:
    """Noisy counts below 0 look odd, so they are cut, but only where there is enough to publish."""
    noisy = noise.add(len(records), scale=1)
    return max(noisy, 0) if len(records) > 1 else noisy


def branch_on_the_output(records: list[Any], noise: Any) -> int:
    return max(noise.add(len(records), scale=1), 0)


def small_counts_suppressed(records: list[Any], noise: Any) -> int | None:
    """Exact counts decide whether there is an answer."""
    return noise.add(len(records), scale=1) if len(records) >= 2 else None


def refuses_what_it_sees(records: list[Any], noise: Any) -> int:
    """An error about the data is an answer too."""
    if "c" in records:
        raise ValueError("c is not expected")
    return noise.add(len(records), scale=1)


def tells_its_log(records: list[Any], noise: Any) -> int:
    """Nothing is wrong with what it returns."""
    print(f"counting {len(records)} rows")  # noqa: T201 - the fault
    return noise.add(len(records), scale=1)


def double_spending(records: list[Any], noise: Any) -> tuple[int, int]:
    """Two answers, each for the whole budget."""
    return noise.add(records.count("a"), scale=1), noise.add(len(records), scale=1)


def spent_once_each(records: list[Any], noise: Any) -> tuple[int, int]:
    return noise.add(records.count("a"), scale=2), noise.add(len(records), scale=2)


def forgotten_term(records: list[Any], noise: Any) -> tuple[int, int, int]:
    """Two answers for half of the budget each, and a third that the accountant was not told of."""
    told = (noise.add(records.count("a"), scale=2), noise.add(len(records), scale=2))
    return (*told, noise.add(records.count("a"), scale=2))


def paid_for_all(records: list[Any], noise: Any) -> tuple[int, ...]:
    return tuple(noise.add(records.count("a"), scale=4, sensitivity=1) for _ in range(4))


def cap_by_others(records: list[Any], noise: Any) -> int:
    """Persons keep as many rows as persons have in the middle: one person more changes what others keep."""
    sizes = sorted(len(rows) for rows in records)
    cap = sizes[len(sizes) // 2] if sizes else 0
    return noise.add(sum(min(size, cap) for size in sizes), scale=3, sensitivity=3)


def cap_given(records: list[Any], noise: Any) -> int:
    return noise.add(sum(min(len(rows), 2) for rows in records), scale=2, sensitivity=2)


def type_sniffing(records: list[Any], noise: Any) -> int:
    """A column of digits is read as numbers: one text more, and 01 is no longer 1."""
    is_number = all(record.isdigit() for record in records)
    values = [str(int(record)) if is_number else record for record in records]
    return noise.add(values.count("1"), scale=1, sensitivity=1)


def type_declared(records: list[Any], noise: Any) -> int:
    values = [str(int(record)) if record.isdigit() else record for record in records]
    return noise.add(values.count("1"), scale=1, sensitivity=1)


PERSONS = ["", "x", "xx", "xxx"]
TEXTS = ["1", "01", "x"]
EXHIBITS = (
    Exhibit("number of rows by default", number_of_rows_by_default, CELLS, ("replay", "statistics")),
    Exhibit("number of bins given", number_of_bins_given, CELLS, trials=8_000, is_quick=False),
    Exhibit("domain from the data", domain_from_the_data, CELLS, ("replay", "statistics")),
    Exhibit("branch on the data", branch_on_the_data, CELLS, BY_ALL),
    Exhibit("branch on the output", branch_on_the_output, CELLS),
    Exhibit("small counts suppressed", small_counts_suppressed, CELLS, BY_ALL),
    Exhibit("refuses what it sees", refuses_what_it_sees, CELLS, BY_ALL),
    Exhibit("tells its log", tells_its_log, CELLS, ("replay",)),
    Exhibit("double spending", double_spending, CELLS, BY_ALL),
    Exhibit("spent once each", spent_once_each, CELLS, is_quick=False),
    Exhibit("forgotten term", forgotten_term, CELLS, ("replay", "statistics")),
    Exhibit("paid for all", paid_for_all, CELLS[:2], is_quick=False),
    Exhibit("cap by other people's rows", cap_by_others, PERSONS, BY_ALL, records=4),
    Exhibit("cap given", cap_given, PERSONS),
    Exhibit("type sniffing", type_sniffing, TEXTS, BY_ALL, records=4),
    Exhibit("type declared", type_declared, TEXTS, records=4),
)
