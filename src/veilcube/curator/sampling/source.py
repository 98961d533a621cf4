"""Where random words come from: the interface that a sampler reads, and the one source that production code uses."""

import os
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 32
NONCE = bytes(16)
ZERO_BLOCK = bytes(1 << 16)

Words = npt.NDArray[np.uint64]


@runtime_checkable
class RandomWords(Protocol):
    """A tape of independent, uniform 64-bit words.

    Each call returns the next ``count`` words of the tape in a new array that belongs to the caller, who may wipe it.
    """

    def words(self, count: int) -> Words:
        """Return the next ``count`` words of the tape."""
        ...


class SystemWords:
    """Random words from AES-256 in counter mode, under a key from the operating system.

    Every call of ``words`` takes a fresh 256-bit key from ``os.urandom``, uses its keystream once and drops it: an
    object of this class has no state. So nothing can be shared by a fork, carried into a thread, pickled or read out
    later, and one object may serve several threads and processes; the fixed nonce is safe because no key lives twice.
    """

    __slots__ = ()

    def words(self, count: int) -> Words:
        """Return ``count`` words that no other call, thread or process will ever see."""
        keystream = np.empty(count, dtype=np.uint64)
        target = keystream.view(np.uint8).data
        cipher = Cipher(algorithms.AES256(os.urandom(KEY_BYTES)), modes.CTR(NONCE)).encryptor()
        for start in range(0, target.nbytes, len(ZERO_BLOCK)):
            piece = target[start : start + len(ZERO_BLOCK)]
            # The keystream is the encryption of zeros; whole blocks share one constant instead of allocating it.
            cipher.update_into(ZERO_BLOCK if piece.nbytes == len(ZERO_BLOCK) else bytes(piece.nbytes), piece)
        return keystream
