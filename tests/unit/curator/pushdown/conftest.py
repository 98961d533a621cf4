from collections.abc import Iterator

import pytest

from support.postgres import running_server


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url
