from .desk import Desk as Desk
from .rows import PrivateRows as PrivateRows
from .table import ProtectedTable as ProtectedTable
