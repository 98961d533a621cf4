from .binning import BinIndex as BinIndex, CellRule as CellRule
from .normalising import (
    DATES as DATES,
    INTEGERS as INTEGERS,
    TEXTS as TEXTS,
    WIDE_NUMBERS as WIDE_NUMBERS,
    codes_of_numbers as codes_of_numbers,
    is_beyond_floats as is_beyond_floats,
    normalised as normalised,
    person_text as person_text,
    plain_spelling as plain_spelling,
    plain_values as plain_values,
)
