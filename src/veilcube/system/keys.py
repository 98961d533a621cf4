"""Keys of digests, from the system's entropy. They are no noise: that comes from the samplers alone."""

import os

KEY_BYTES = 32


def new_key() -> bytes:
    """Return a key that nobody can guess."""
    return os.urandom(KEY_BYTES)
