from .answer_noise import (
    NoiseCumulants as NoiseCumulants,
    WidthRule as WidthRule,
    answer_half_widths as answer_half_widths,
)
from .discrete_gaussian import BlockGaussian as BlockGaussian, DiscreteGaussian as DiscreteGaussian
from .joint_variance import JointVariances as JointVariances, joint_variances as joint_variances
from .laplace_sums import NoiseSum as NoiseSum, laplace_sum as laplace_sum, lattice_laplace_sum as lattice_laplace_sum
from .noise import (
    DiscreteLaplace as DiscreteLaplace,
    JointLaplace as JointLaplace,
    Noise as Noise,
    SharpenedLaplace as SharpenedLaplace,
    read_noise as read_noise,
    read_ratio as read_ratio,
)
from .normal_quantiles import (
    laplace_sum_deviations as laplace_sum_deviations,
    normal_quantile as normal_quantile,
    widest_deviations as widest_deviations,
)
from .summed_noise import (
    half_widths as half_widths,
    tail as tail,
    two_weight_half_widths as two_weight_half_widths,
    weighted_half_width as weighted_half_width,
)
