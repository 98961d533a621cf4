"""Implicit linear maps from cells to measurements, each with its sensitivity and its exact error."""

from collections.abc import Mapping

from veilcube.errors import ReleaseFileError
from veilcube.operators.base import NeighbourName, Operator, OperatorReader
from veilcube.operators.identity import IdentityOperator, read_identity

_READERS: Mapping[str, OperatorReader] = {"identity": read_identity}


def read_operator(data: Mapping[str, object]) -> Operator:
    """Rebuild an operator from the plain data of its ``to_dict``."""
    reader = _READERS.get(str(data.get("kind")))
    if reader is None:
        raise ReleaseFileError("the release uses a strategy that this version does not know; upgrade veilcube")
    try:
        return reader(data)
    except (KeyError, TypeError, ValueError) as problem:
        raise ReleaseFileError("the release describes its strategy in a way that is not well formed") from problem


__all__ = ["IdentityOperator", "NeighbourName", "Operator", "read_operator"]
