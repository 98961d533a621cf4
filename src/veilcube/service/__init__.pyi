from .app import create_app as create_app, serve as serve
from .base import ServiceError as ServiceError, Settings as Settings
from .client import Connection as Connection, RemoteRelease as RemoteRelease, connect as connect
