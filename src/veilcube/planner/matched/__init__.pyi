from .strategy import Matched as Matched, matched_strategies as matched_strategies
