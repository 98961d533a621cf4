from .refined_release import RefinedRelease as RefinedRelease, refine_release as refine_release
