from .app import create_app as create_app, serve as serve
from .base import ServiceError as ServiceError, Settings as Settings
from .client import (
    Connection as Connection,
    RemotePartition as RemotePartition,
    RemoteRelease as RemoteRelease,
    RemoteTable as RemoteTable,
    connect as connect,
)
