from .info import info as info
from .query import Queries as Queries, query as query
from .refine import refine as refine
from .synthesize import synthesize as synthesize
