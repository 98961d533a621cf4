from .factory import create_app as create_app
from .serving import serve as serve
