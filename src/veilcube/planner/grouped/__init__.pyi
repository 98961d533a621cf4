from .choosing import FirstLook as FirstLook, choose_tables as choose_tables
from .design import GroupedDesign as GroupedDesign
from .strategy import GroupedTables as GroupedTables
