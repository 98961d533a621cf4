"""Write the table of half-widths at 95% that ``laws`` keeps: to be run when what it is made of changes.

Run: python -m tools.standard_widths
"""

import numpy as np

from veilcube.laws.standard_widths import STORED_CONFIDENCE, STORED_TABLE, make_table

if __name__ == "__main__":
    np.save(STORED_TABLE, make_table(STORED_CONFIDENCE).coefficients)
