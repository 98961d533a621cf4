"""Releases that are open: read when first asked for, kept while they are asked, and let go of when others are."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from veilcube.analyst import Release, explored, open_release
from veilcube.service.public.files import NamedFiles

_MOST_OPEN = 8


@dataclass(eq=False)
class _Opened:
    """A release with the version of its file, and the estimators that were fitted."""

    release: Release
    version: tuple[int, int]
    fitted: set[str] = field(default_factory=set)
    pages: dict[tuple[str, float], bytes] = field(default_factory=dict)
    turn: threading.Lock = field(default_factory=threading.Lock)


class Shelf:
    """The releases of a folder."""

    def __init__(self, folder: Path, open_file: Callable[[Path], Release] = open_release) -> None:
        self.files = NamedFiles(folder, ".veil", "a release")
        self._open, self._turn = open_file, threading.Lock()
        self._opened: OrderedDict[str, _Opened] = OrderedDict()

    def release(self, name: str, estimator: str | None = None) -> Release:
        """Return an open release; with an estimator, one that is fitted already, so that threads do not do it twice."""
        opened = self._find(name)
        if estimator is not None and estimator not in opened.fitted:
            with opened.turn:
                opened.release.count({}, estimator=estimator)
                opened.fitted.add(estimator)
        return opened.release

    def explored(self, name: str, estimator: str, confidence: float) -> bytes:
        """Return what the Explore page of a release reads, as JSON; remembered, for it takes long to find."""
        opened, asked = self._find(name), (estimator, confidence)
        with opened.turn:
            found = opened.pages.get(asked)
            if found is None:
                model = explored(opened.release, name, estimator=estimator, confidence=confidence)
                found = json.dumps(model | {"file": f"{name}{self.files.ending}"}).encode()
                opened.pages = {asked: found}
        return found

    def _find(self, name: str) -> _Opened:
        path = self.files.existing(name)
        facts = path.stat()
        version = (facts.st_mtime_ns, facts.st_size)
        with self._turn:
            opened = self._opened.get(name)
            if opened is None or opened.version != version:
                opened = _Opened(self._open(path), version)
                self._opened[name] = opened
            self._opened.move_to_end(name)
            while len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)
        return opened


def release_facts(name: str, release: Release) -> dict[str, object]:
    """Return what there is to know about a release before it is asked."""
    return {
        "name": name,
        "schema": release.schema.to_dict(),
        "fingerprint": release.schema.fingerprint(),
        "cells": release.schema.cells,
        "privacy": release.privacy.to_dict(),
        "counted": release.counted,
        "plan": dict(release.plan),
        "created": release.record.created,
        "refinement": None if release.refinement is None else dict(release.refinement),
    }
