"""Marginals rebuilt from the plain data of a file, which is not trusted."""

from collections.abc import Mapping

from veilcube.errors import PlanError
from veilcube.operators.marginals.tables import MarginalsOperator

MOST_AXES = 64
LARGEST_MEASUREMENT = 2**40


def read_marginals(data: Mapping[str, object]) -> MarginalsOperator:
    """Rebuild from ``to_dict``; the data is untrusted."""
    shape, attributes, k, multipliers = (data[key] for key in ("shape", "attributes", "k", "multipliers"))
    chosen = data.get("tables")
    if not isinstance(shape, list) or not isinstance(attributes, list) or not isinstance(multipliers, list):
        raise ValueError("shape, attributes and multipliers must be lists")
    if not all(type(size) is int and 0 < size <= LARGEST_MEASUREMENT for size in shape) or len(shape) > MOST_AXES:
        raise ValueError("sizes must be whole numbers above 0")
    if type(k) is not int or not isinstance(chosen, list | None) or (chosen and not isinstance(chosen[0], list)):
        raise ValueError("k must be a whole number, and tables lists of axes")
    tables = None if chosen is None else tuple(tuple(table) for table in chosen)
    names = tuple(str(name) for name in attributes)
    try:
        operator = MarginalsOperator(tuple(shape), names, k, tuple(multipliers), tables)
    except PlanError as problem:
        raise ValueError(str(problem)) from problem
    if operator.measurement_shape[0] > LARGEST_MEASUREMENT:
        raise ValueError("the tables are larger than any file")
    return operator
