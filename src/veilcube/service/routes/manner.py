"""How answers are asked for: parameters that many URLs share."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Query

Estimator = Annotated[str, Query(max_length=40, description="How to estimate; `best` chooses.", examples=["best"])]
Confidence = Annotated[float, Query(gt=0, lt=1, description="The confidence of intervals.", examples=[0.95])]
Interval = Annotated[
    Literal["calibrated", "guaranteed"], Query(description="`guaranteed` intervals hold whatever the data are.")
]
Rows = Annotated[Literal["kept", "all"], Query(description="`all`: rows beyond the cap too, where they were measured.")]
Where = Annotated[
    str | None,
    Query(max_length=10_000, description="Which rows, as SQL; unset, all.", examples=["age BETWEEN 30 AND 39"]),
]
Column = Annotated[str, Query(max_length=200, description="The name of an attribute.", examples=["age"])]
ByNames = Annotated[
    Sequence[Annotated[str, Query(max_length=200)]],
    Query(
        max_length=64, description="Attributes, or levels such as `job:Level 1`; may be repeated.", examples=[["sex"]]
    ),
]
