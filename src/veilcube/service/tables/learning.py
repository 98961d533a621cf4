"""What past answers tell about a question that nobody pays for."""

from collections.abc import Sequence

import numpy as np

from veilcube.curator import Ledger
from veilcube.errors import QueryError
from veilcube.query import Answers, read_query
from veilcube.record import Moment
from veilcube.service.public import WrittenQuery, plain_answer, read_written
from veilcube.service.tables.datasets import Dataset
from veilcube.session import learn_from_history


def learned(
    ledger: Ledger, dataset: Dataset, where: WrittenQuery | None, column: str | None, by: Sequence[str]
) -> dict[str, object]:
    """Estimate a count or a sum from all answers that were ever given to the dataset's questions."""
    schema = dataset.schema
    region = read_query(schema, {} if where is None else read_written(where))
    moment = Moment.ask(schema, region, {} if column is None else {column: 1}, by)
    found = learn_from_history(ledger, dataset.name, moment, dataset.unit)
    if found is None:
        raise QueryError("there are too many values or past answers to learn from in a service; use veilcube.KernelPCA")
    names = [schema.names[axis] for axis in moment.by]
    labels = {
        name: tuple(np.array(schema[name].labels())[cells].tolist())
        for name, cells in zip(names, moment.groups, strict=True)
    }
    shape = tuple(map(len, labels.values())) or (1,)
    value, low, high, stddev = (
        np.asarray(one).reshape(shape) for one in (found.value, found.low, found.high, found.stddev)
    )
    answers = Answers(value, low, high, stddev, found.confidence, found.privacy, labels, found.estimator)
    return plain_answer(answers if labels else answers[0]) | {"cost": "0"}
