from .strategy import matched_strategies as matched_strategies
