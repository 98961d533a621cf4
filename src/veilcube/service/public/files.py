"""Files of one kind in one folder, by name: what a name cannot lead out of."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from veilcube.service.base import ConflictError, NotFoundError, read_name


@dataclass(frozen=True)
class NamedFiles:
    """The files of one kind, such as releases, which end in ``.veil``."""

    folder: Path
    ending: str
    what: str

    def names(self) -> list[str]:
        """Return the names of all files that are there."""
        found = [path.name.removesuffix(self.ending) for path in self.folder.glob(f"*{self.ending}")]
        return sorted(name for name in found if self._is_ours(name))

    def path(self, name: str) -> Path:
        """Return the file of a name, whether there is one or not."""
        return self.folder / f"{read_name(name, self.what)}{self.ending}"

    def existing(self, name: str) -> Path:
        """Return the file of a name that is there."""
        if not self._is_ours(name):
            raise NotFoundError(f"there is no {self.what.partition(' ')[2]} called '{name[:64]}'")
        return self.path(name)

    def require_free(self, name: str) -> Path:
        """Return the file of a name that nothing has: what was published under a name stays what it is."""
        path = self.path(name)
        if os.path.lexists(path):
            raise ConflictError(f"there is {self.what} called '{name}' already; choose another name")
        return path

    def add(self, name: str, work: Path, save: Callable[[Path], object]) -> None:
        """Keep what ``save`` writes to a file under a name that nothing has, also if it took the name meanwhile."""
        path = self.require_free(name)
        with TemporaryDirectory(dir=work, prefix="added-") as folder:
            made = Path(folder) / path.name
            save(made)
            try:
                os.link(made, path)
            except FileExistsError:
                self.require_free(name)
                raise

    def _is_ours(self, name: str) -> bool:
        """Whether a name is that of a regular file in the folder: a link could lead out of it."""
        path = self.path(name)
        return path.is_file() and not path.is_symlink()
