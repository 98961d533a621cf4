"""Implicit linear maps from cells to measurements, each with its sensitivity and its exact error."""

from collections.abc import Mapping

from veilcube.errors import ReleaseFileError
from veilcube.operators.axis import AxisOperator, FlatAxis
from veilcube.operators.base import NeighbourName, Operator, OperatorReader, OperatorWithArrays
from veilcube.operators.haar import HaarAxis
from veilcube.operators.halving import HalvingTree
from veilcube.operators.identity import IdentityOperator, read_identity
from veilcube.operators.marginals import read_marginals
from veilcube.operators.nodes import NodeCounts, read_nodes
from veilcube.operators.nominal import NominalAxis
from veilcube.operators.product import ProductOperator, read_axis, read_product
from veilcube.operators.regions import RegionCounts, read_regions
from veilcube.operators.tree import TreeAxis
from veilcube.operators.tree_shape import hierarchy_levels, tree_fanouts, tree_levels

_READERS: Mapping[str, OperatorReader] = {
    "identity": read_identity,
    "product": read_product,
    "marginals": read_marginals,
    "nodes": read_nodes,
    "regions": read_regions,
}


def read_operator(data: Mapping[str, object]) -> Operator:
    """Rebuild an operator from the plain data of its ``to_dict``."""
    reader = _READERS.get(str(data.get("kind")))
    if reader is None:
        raise ReleaseFileError("the release uses a strategy that this version does not know; upgrade veilcube")
    try:
        return reader(data)
    except (KeyError, TypeError, ValueError) as problem:
        raise ReleaseFileError("the release describes its strategy in a way that is not well formed") from problem


__all__ = [
    "AxisOperator",
    "FlatAxis",
    "HaarAxis",
    "HalvingTree",
    "IdentityOperator",
    "NeighbourName",
    "NodeCounts",
    "NominalAxis",
    "Operator",
    "OperatorWithArrays",
    "ProductOperator",
    "RegionCounts",
    "TreeAxis",
    "hierarchy_levels",
    "read_axis",
    "read_operator",
    "tree_fanouts",
    "tree_levels",
]
