"""Where both sides meet, and the only place where they do: releases are made here, and tables put behind a budget."""

from veilcube.session.protecting import protect
from veilcube.session.releasing import release

__all__ = ["protect", "release"]
