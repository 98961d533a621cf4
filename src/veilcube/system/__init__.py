"""What any room may use: compiled loops, text files, and how the command starts."""

from veilcube.system.starting import end_quietly_when_interrupted

# Before anything heavy is loaded, which the next line begins with.
end_quietly_when_interrupted()

from veilcube.system.loops import compile_loop  # noqa: E402
from veilcube.system.text_files import read_text  # noqa: E402

__all__ = ["compile_loop", "end_quietly_when_interrupted", "read_text"]
