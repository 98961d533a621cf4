from .attribute import Attribute as Attribute, Nominal as Nominal, Ordinal as Ordinal
from .codebook import codebook as codebook
from .divisions import (
    Bins as Bins,
    Calendar as Calendar,
    Division as Division,
    WholeNumbers as WholeNumbers,
    read_date as read_date,
)
from .grouping import (
    Grouping as Grouping,
    level_name as level_name,
    read_groupings as read_groupings,
    require_groups as require_groups,
    split_level as split_level,
)
from .hierarchy import Hierarchy as Hierarchy, Node as Node
from .region import BYTES_PER_CELL as BYTES_PER_CELL, Box as Box, Region as Region
from .schema import Schema as Schema, read_toml as read_toml, require_schema as require_schema
from .showing import (
    attributes_as_html as attributes_as_html,
    first_of as first_of,
    values_in_words as values_in_words,
)
