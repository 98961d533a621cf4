"""The command line: the same words as the library, one file a command."""

from veilcube.cli.app import main

__all__ = ["main"]
