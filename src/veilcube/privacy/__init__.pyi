from .accountant import (
    Budget as Budget,
    Currency as Currency,
    epsilon_of as epsilon_of,
    is_pure as is_pure,
    rho_of as rho_of,
)
from .budget import (
    LARGEST_EPSILON as LARGEST_EPSILON,
    LONGEST_TEXT as LONGEST_TEXT,
    EpsilonLike as EpsilonLike,
    read_epsilon as read_epsilon,
    show_fraction as show_fraction,
    write_fraction as write_fraction,
)
from .event import (
    ChoiceEvent as ChoiceEvent,
    Event as Event,
    GaussianEvent as GaussianEvent,
    LaplaceEvent as LaplaceEvent,
    NoiseEvent as NoiseEvent,
    NoiseKey as NoiseKey,
    ParallelEvent as ParallelEvent,
    SequentialEvent as SequentialEvent,
    noise_events as noise_events,
    read_event as read_event,
)
from .promise import DELTA_SHOWN as DELTA_SHOWN, Promise as Promise
from .quantile_split import (
    SLOTS_IN_ALL as SLOTS_IN_ALL,
    QuantileSplit as QuantileSplit,
    SplitNode as SplitNode,
    slots_for as slots_for,
    split_costs as split_costs,
    spread_rows as spread_rows,
)
from .rank_mechanisms import (
    MOST_ROWS as MOST_ROWS,
    RankCosts as RankCosts,
    RankMethod as RankMethod,
    rank_costs as rank_costs,
    rank_distribution as rank_distribution,
    rank_reach as rank_reach,
)
from .secrecy import Private as Private, leaves_no_trace as leaves_no_trace, paid_for as paid_for
from .statement import PrivacyStatement as PrivacyStatement, join_promises as join_promises
from .unit import (
    LARGEST_COLUMN as LARGEST_COLUMN,
    LARGEST_SCALE as LARGEST_SCALE,
    LARGEST_TABLE as LARGEST_TABLE,
    Neighbours as Neighbours,
    PrivacyUnit as PrivacyUnit,
    scale_for as scale_for,
    sigma_squared_for as sigma_squared_for,
    unit_sensitivity as unit_sensitivity,
    unit_sensitivity_l2_squared as unit_sensitivity_l2_squared,
)
from .zcdp import (
    LARGEST_RHO as LARGEST_RHO,
    SMALLEST_DELTA as SMALLEST_DELTA,
    SMALLEST_RHO as SMALLEST_RHO,
    delta_of as delta_of,
    epsilon_for as epsilon_for,
    pure_epsilon_within as pure_epsilon_within,
    pure_rho as pure_rho,
    read_delta as read_delta,
    read_rho as read_rho,
    rho_for as rho_for,
)
