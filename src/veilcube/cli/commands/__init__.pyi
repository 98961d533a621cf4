from .demo import demo as demo
from .info import info as info
from .plan import plan as plan
from .query import query as query
from .refine import refine as refine
from .release import release as release
from .synthesize import synthesize as synthesize
