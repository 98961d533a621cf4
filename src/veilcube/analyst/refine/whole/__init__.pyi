from .whole_release import refine_release as refine_release, reopen_refined as reopen_refined
