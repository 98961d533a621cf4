"""The house keeps its bars: rooms of few modules, short functions, imports through doors, no cycles.

Noise meets exact values in the mechanisms and nowhere else.
"""

from pathlib import Path

import pytest
from tools.house import House, measured
from tools.samplers import MAY_DRAW, held_samplers

HOUSE = House()
UNIT_TESTS = Path(__file__).parent
MEASURED = measured(HOUSE)


@pytest.mark.parametrize("bar", MEASURED)
def test_nothing_offends_the_bar(bar: str) -> None:
    found, most = MEASURED[bar]
    assert len(found) <= most, found


def test_a_ladder_of_questions_for_types_would_be_found_but_equality_may_ask(tmp_path: Path) -> None:
    folder = tmp_path / "veilcube" / "operators"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "tree.py").write_text(
        "class Tree:\n    def __eq__(self, other):\n        return isinstance(other, Tree)\n\n\n"
        "def ladder(operator):\n    return 1 if isinstance(operator, Tree) else getattr(operator, 'kind', 0)\n"
    )
    assert len(House(tmp_path / "veilcube").type_questions()) == 2


def test_an_import_past_a_door_and_a_cycle_would_be_found(tmp_path) -> None:
    for room, other in (("one", "two"), ("two", "one")):
        folder = tmp_path / "veilcube" / room
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "inner.py").write_text(f"from veilcube.{other}.inner import name\n")
    house = House(tmp_path / "veilcube")
    assert len(house.past_doors()) == 2
    assert house.cycles() == ["veilcube.one <-> veilcube.two"]


def folders_without_counterpart(tests: Path, source: Path) -> list[str]:
    """Return the folders with tests that mirror no folder of the package."""
    folders = {module.parent.relative_to(tests) for module in tests.rglob("test_*.py")}
    return sorted(str(folder) for folder in folders if not (source / folder).is_dir())


def test_unit_tests_lie_in_the_folder_of_what_they_test() -> None:
    assert folders_without_counterpart(UNIT_TESTS, HOUSE.root) == []


def test_unit_tests_in_a_folder_of_their_own_would_be_found(tmp_path: Path) -> None:
    for folder in ("rooms", "history_of_bugs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_it.py").touch()
    source = tmp_path / "source"
    (source / "rooms").mkdir(parents=True)
    assert folders_without_counterpart(tmp_path, source) == ["history_of_bugs"]


SAMPLING_AND_MECHANISMS = {
    "curator/sampling/__init__.pyi": "from .laplace import discrete_laplace as discrete_laplace\n",
    "curator/sampling/laplace.py": "def discrete_laplace(scale, size): ...\n",
    "curator/mechanisms/__init__.pyi": "from .linear import Linear as Linear\n",
    "curator/mechanisms/linear.py": (
        "from veilcube.curator.sampling import discrete_laplace\n"
        "NoiseSampler: TypeAlias = Callable[[Fraction, Shape], Integers]\n"
        "class Linear:\n"
        "    def measure(self, counts, draw_noise: NoiseSampler = discrete_laplace): ...\n"
    ),
}
CURATOR_DOOR = {"curator/__init__.pyi": "from .sampling import discrete_laplace as discrete_laplace\n"}
OFFENDERS = {
    "import": "from veilcube.curator.sampling import discrete_laplace\n",
    "import inside a function": "def f():\n    from veilcube.curator.sampling import discrete_laplace as draw\n",
    "import past the door": "from veilcube.curator.sampling.laplace import anything\n",
    "import of the package": "from veilcube.curator import sampling\n",
    "import of the package by its name": "import veilcube.curator.sampling as drawing\n",
    "relative import": "from ..sampling import anything\n",
    "import from who imports it": "from veilcube.curator.mechanisms.linear import discrete_laplace as draw\n",
    "attribute": "import veilcube\nveilcube.curator.sampling.discrete_laplace(1, 2)\n",
    "import by a text": "import_module('veilcube.curator.sampling')\n",
    "relative import by a text": "import_module('.sampling', 'veilcube.curator')\n",
    "a sampler that it is given": "def noisy(counts, given):\n    return counts + given.draw_noise(1, counts.shape)\n",
    "a sampler that it looks up": "def noisy(counts, given):\n    return counts + getattr(given, 'draw_noise')(1, 2)\n",
    "a sampler that it passes on": "def noisy(mechanism, draw):\n    mechanism.measure(counts, draw_noise=draw)\n",
    "the type of samplers": "from veilcube.curator.mechanisms.linear import NoiseSampler\n",
    "numpy's generator": "import numpy as np\nnoise = np.random.default_rng().laplace(size=3)\n",
    "Python's generator": "from random import gauss\n",
    "the operating system's": "import os\nword = os.urandom(8)\n",
}


def small_house(root: Path, texts: dict[str, str]) -> House:
    """Build a house of samplers, one mechanism, and some more modules."""
    for name, text in (SAMPLING_AND_MECHANISMS | texts).items():
        path = root / "veilcube" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").touch()
    return House(root / "veilcube")


@pytest.mark.parametrize("text", OFFENDERS.values(), ids=list(OFFENDERS))
def test_a_module_that_could_draw_noise_outside_the_mechanisms_would_be_found(text: str, tmp_path: Path) -> None:
    house = small_house(tmp_path, {"curator/protected/offender.py": text})
    found = held_samplers(house)
    assert found
    assert all(offence.startswith("veilcube.curator.protected.offender: ") for offence in found)


def test_a_door_that_shows_a_sampler_and_who_enters_by_it_would_be_found(tmp_path: Path) -> None:
    texts = {"session/releasing.py": "from veilcube.curator import discrete_laplace as anything\n"}
    found = held_samplers(small_house(tmp_path, texts | CURATOR_DOOR))
    assert "veilcube.curator: shows discrete_laplace" in found
    assert "veilcube.session.releasing: imports discrete_laplace from veilcube.curator" in found


def test_a_mechanism_that_shows_the_sampler_it_draws_with_would_be_found(tmp_path: Path) -> None:
    shown = {"curator/mechanisms/__init__.pyi": "from .linear import discrete_laplace as discrete_laplace\n"}
    assert held_samplers(small_house(tmp_path, shown)) == ["veilcube.curator.mechanisms: shows discrete_laplace"]


def test_who_asks_a_mechanism_holds_no_sampler(tmp_path: Path) -> None:
    texts = {
        "curator/protected/innocent.py": (
            '"""Noise comes from curator.sampling, by way of a mechanism: see draw_noise there."""\n'
            "from veilcube.curator.mechanisms import Linear\nLinear().measure([1, 2])\n"
        ),
        "analyst/synthesis.py": "import numpy as np\nrows = np.random.default_rng(0).random(3)\n",
    }
    assert held_samplers(small_house(tmp_path, texts)) == []


def test_only_samplers_mechanisms_and_audits_of_made_up_tables_may_draw() -> None:
    assert set(MAY_DRAW) == {"veilcube.curator.sampling", "veilcube.curator.mechanisms", "veilcube.auditing"}
