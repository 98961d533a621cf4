from .connection import Connection as Connection, connect as connect
from .release import RemoteRelease as RemoteRelease
from .table import RemotePartition as RemotePartition, RemoteTable as RemoteTable
