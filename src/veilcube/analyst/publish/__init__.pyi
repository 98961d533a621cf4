from .explored import explored as explored
from .sites import ASSETS as ASSETS, SCRIPTS as SCRIPTS, Sites as Sites, explore_body as explore_body
