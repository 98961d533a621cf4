"""Joint noise on a rich line of 4096 cells at epsilon 0.1: exact error beside HDMM's, and the time of a draw.

Least squares without any prior, with the shares that a release uses. Bars: HDMM's 141.4 on all prefixes and 174.4 on
random ranges. Run: python -m benchmarks.joint_noise
"""

import time
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.matched import BARS, CELLS, EPSILON, SAMPLED
from veilcube.curator.sampling import joint_laplace
from veilcube.laws.joint_variance import MARGIN, joint_variances
from veilcube.planner.staged.design import shares_with_root
from veilcube.privacy import scale_for
from veilcube.privacy.budget import read_epsilon

HEIGHTS = (9, 10, 11)
REPEATS = 5
_AT_ONCE = 512


def main() -> None:
    schema = vc.Schema([vc.Ordinal("x", 1, CELLS)])
    asked = (vc.Workload.prefixes(schema), vc.Workload.random_ranges(schema, SAMPLED, seed=0))
    print(f"{'blocks of':<12}" + "".join(f"{name:>16}{'bar':>8}" for name in BARS) + f"{'all cells drawn':>20}")
    for height in HEIGHTS:
        scales = [scale_for(read_epsilon(EPSILON) * share, 1) for share in shares_with_root(height)]
        variances = joint_variances(tuple(map(float, scales)))
        errors = []
        for workload in asked:
            is_in = _cells(workload)
            parts = [is_in[start : start + _AT_ONCE] for start in range(0, len(is_in), _AT_ONCE)]
            sums = [variances.of_sums(part.reshape(len(part), -1, 2**height)) for part in parts]
            errors.append(float(np.sqrt(np.concatenate(sums).mean() / MARGIN)))
        found = "".join(f"{error:>16.1f}{bar:>8.1f}" for error, bar in zip(errors, BARS.values(), strict=True))
        print(f"{2**height:<12,}{found}{_seconds(scales, CELLS >> height):>18.2f} s")


def _cells(workload: vc.Workload) -> NDArray[np.bool_]:
    cells = np.arange(CELLS)
    inside: NDArray[np.bool_] = (workload.low <= cells) & (cells <= workload.high)
    return inside


def _seconds(scales: list[Fraction], blocks: int) -> float:
    """Return the median time of a draw: it depends on the noise."""
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        joint_laplace(scales, blocks)
        taken.append(time.perf_counter() - started)
    return float(np.median(taken))


if __name__ == "__main__":
    main()
