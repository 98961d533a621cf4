"""Work in forked copies of this process, and how much of what they draw agrees."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt


def in_forked_children(work: Callable[[], npt.NDArray[Any]], children: int) -> list[bytes]:
    """Run the work in forked copies of this process, one after another, and return what each computed."""
    results = []
    for _ in range(children):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "wb") as stream:
                stream.write(work().tobytes())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            results.append(stream.read())
        assert os.waitpid(child, 0)[1] == 0
    return results


def agreeing_entries(results: list[bytes]) -> int:
    """How many entries any two of the results have in common, wherever they stand."""
    entries = np.concatenate([np.frombuffer(result, dtype=np.int64) for result in results])
    return entries.size - np.unique(entries).size
