from .export import export as export
from .info import info as info
from .query import Queries as Queries, query as query
from .refine import refine as refine
from .report import report as report
from .synthesize import synthesize as synthesize
