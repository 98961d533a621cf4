"""A repeatable source of random words, for tests only: production code has no way to set a seed."""

import numpy as np
import numpy.typing as npt


class SeededWords:
    """The same tape for the same seed, in whatever pieces it is read (Philox, a counter-based generator)."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Philox(seed)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        return self._generator.random_raw(count)


class RecordedWords:
    """A tape written out word by word; reading beyond its end is an error."""

    def __init__(self, tape: list[int]) -> None:
        self._tape = tape

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        taken, self._tape = self._tape[:count], self._tape[count:]
        if len(taken) < count:
            raise EOFError("the recorded tape has ended")
        return np.array(taken, dtype=np.uint64)
