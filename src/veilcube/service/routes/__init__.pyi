from .every import ROUTERS as ROUTERS
