"""Implicit linear maps from cells to measurements, each with its sensitivity and its exact error."""

from collections.abc import Mapping

from veilcube.errors import ReleaseFileError
from veilcube.operators.base import Operator, OperatorReader, unknown_kind
from veilcube.operators.grouped import read_grouped_tables
from veilcube.operators.identity import read_identity
from veilcube.operators.marginals import read_marginals
from veilcube.operators.partition import read_regions
from veilcube.operators.product import read_product
from veilcube.operators.staged import read_nodes

_READERS: Mapping[str, OperatorReader] = {
    "identity": read_identity,
    "product": read_product,
    "marginals": read_marginals,
    "nodes": read_nodes,
    "regions": read_regions,
    "grouped tables": read_grouped_tables,
}


def read_operator(data: Mapping[str, object]) -> Operator:
    """Rebuild an operator from the plain data of its ``to_dict``."""
    reader = _READERS.get(str(data.get("kind")))
    if reader is None:
        raise unknown_kind()
    try:
        return reader(data)
    except (KeyError, TypeError, ValueError) as problem:
        raise ReleaseFileError("the release describes its strategy in a way that is not well formed") from problem
