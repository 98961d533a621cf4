from .exporting import Exporting as Exporting
from .exports import Exports as Exports
from .files import FORMATS as FORMATS, table_format as table_format
