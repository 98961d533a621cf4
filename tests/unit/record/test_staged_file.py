"""A refined release keeps its nodes in its file, and a file whose nodes make no sense is refused."""

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from support.releases import release_of
from support.staged_trees import RichLevels, refined_release
from support.veil_files import edit_document, entries_of, write_entries
from veilcube.errors import ReleaseFileError
from veilcube.laws.noise import DiscreteLaplace, JointLaplace
from veilcube.operators import NodeCounts
from veilcube.planner import Identity, plan
from veilcube.record import NoisyMeasurement, ReleaseRecord, open_record, require_savable, save_record
from veilcube.record.archive import read_archive, write_archive
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("a", 1, 9), Ordinal("b", 1, 5)])
NODES = "measurements/1/nodes"


@pytest.fixture(scope="module")
def record() -> ReleaseRecord:
    counts = np.random.default_rng(6).poisson(6, size=SCHEMA.shape)
    found = refined_release(SCHEMA, counts, epsilon=2, seed=9).record
    assert len(found.measurements) > 3
    assert found.measurements[1].operator.rows > 2
    return found


def test_a_refined_release_comes_back_part_by_part(record: ReleaseRecord, tmp_path: Path) -> None:
    save_record(record, tmp_path / "refined.veil")
    again = open_record(tmp_path / "refined.veil")
    assert (again.schema, again.statement, len(again.measurements)) == (
        SCHEMA,
        record.statement,
        len(record.measurements),
    )
    for ours, theirs in zip(record.measurements, again.measurements, strict=True):
        np.testing.assert_array_equal(ours.values, theirs.values)
        np.testing.assert_array_equal(ours.operator.chosen, theirs.operator.chosen)
        assert (ours.operator.tree, ours.operator.level, ours.noise) == (
            theirs.operator.tree,
            theirs.operator.level,
            theirs.noise,
        )


def test_joint_noise_comes_back_as_such(tmp_path: Path) -> None:
    schema = Schema([Ordinal("a", 1, 16)])
    record = refined_release(schema, np.full(16, 900), epsilon=1, seed=3, strategy=RichLevels()).record
    laws = [part.noise for part in record.measurements]
    assert any(isinstance(law, JointLaplace) for law in laws)
    save_record(record, tmp_path / "rich.veil")
    assert [part.noise for part in open_record(tmp_path / "rich.veil").measurements] == laws
    assert JointLaplace(Fraction(3)) != DiscreteLaplace(Fraction(3))


def test_joint_noise_of_anything_but_nodes_is_refused() -> None:
    plain = release_of(SCHEMA, np.full(SCHEMA.shape, 3), "1", 1, Identity()).record
    part = dataclasses.replace(plain.measurements[0], noise=JointLaplace(plain.measurements[0].noise.scale))
    with pytest.raises(ReleaseFileError, match="joint noise belongs to nodes"):
        dataclasses.replace(plain, measurements=(part,))


def test_what_passes_the_check_before_a_charge_can_be_saved(record: ReleaseRecord, tmp_path: Path) -> None:
    chosen = plan(SCHEMA, 2, "staged tree")
    require_savable(SCHEMA, record.statement, chosen.parts, chosen.to_dict())
    save_record(record, tmp_path / "refined.veil")


def with_array(folder: Path, record: ReleaseRecord, name: str, array: np.ndarray) -> Path:
    """Save the release with one of its arrays replaced, everything else being sound."""
    save_record(record, folder / "sound.veil")
    archive = read_archive(folder / "sound.veil")
    arrays = dict(archive.arrays) | {name: array}
    write_archive(folder / "changed.veil", archive.manifest, arrays, dimensions=archive.dimensions)
    return folder / "changed.veil"


def test_the_unchanged_arrays_of_these_tests_open(record: ReleaseRecord, tmp_path: Path) -> None:
    nodes = record.measurements[1].operator.chosen
    assert open_record(with_array(tmp_path, record, NODES, nodes.copy())).schema == SCHEMA


@pytest.mark.parametrize(
    "change",
    [
        lambda nodes: nodes[::-1].copy(),
        lambda nodes: np.concatenate([nodes[:1], nodes[:-1]]),
        lambda nodes: nodes - nodes[0] - 1,
        lambda nodes: nodes + 10_000,
        lambda nodes: np.append(nodes[:-1], 2**62),
        lambda nodes: nodes[:-1].copy(),
        lambda nodes: np.append(nodes, nodes[-1] + 1),
    ],
    ids=["unsorted", "doubled", "below zero", "out of range", "far out of range", "one fewer", "one more"],
)
def test_nodes_that_make_no_sense_are_refused(
    record: ReleaseRecord, tmp_path: Path, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    path = with_array(tmp_path, record, NODES, change(record.measurements[1].operator.chosen))
    with pytest.raises(ReleaseFileError) as caught:
        open_record(path)
    assert "\n" not in str(caught.value)


def test_a_file_without_the_nodes_is_refused(record: ReleaseRecord, tmp_path: Path) -> None:
    save_record(record, tmp_path / "sound.veil")
    archive = read_archive(tmp_path / "sound.veil")
    arrays = {name: array for name, array in archive.arrays.items() if name != NODES}
    dimensions = {name: archive.dimensions[name] for name in arrays}
    write_archive(tmp_path / "bare.veil", archive.manifest, arrays, dimensions=dimensions)
    with pytest.raises(ReleaseFileError, match="not those that its measurements call for"):
        open_record(tmp_path / "bare.veil")


def edited(folder: Path, record: ReleaseRecord, edit: Callable[[dict], object]) -> Path:
    save_record(record, folder / "changed.veil")
    edit_document(folder / "changed.veil", "veil.json", lambda manifest: edit(manifest["measurements"][1]["operator"]))
    return folder / "changed.veil"


def test_the_unedited_manifest_of_these_tests_opens(record: ReleaseRecord, tmp_path: Path) -> None:
    assert open_record(edited(tmp_path, record, lambda _: None)).schema == SCHEMA


@pytest.mark.parametrize(
    "edit",
    [
        lambda operator: operator.update(level=operator["level"] + 30),
        lambda operator: operator.update(level=-1),
        lambda operator: operator.update(rows=operator["rows"] + 1),
        lambda operator: operator.update(rows=10**12),
        lambda operator: operator.update(tree=[]),
        lambda operator: operator["tree"][0].update(size=8),
        lambda operator: operator["tree"][0].update(bits=60),
        lambda operator: operator["tree"].reverse(),
        lambda operator: operator["tree"][0].update(codes=list(range(9, 0, -1))),
        lambda operator: operator.pop("tree"),
    ],
    ids=["no such level", "level below zero", "more rows", "endless rows", "no tree", "another size", "too deep",
         "another schema", "codes that fall", "tree left out"],
)  # fmt: skip
def test_a_manifest_that_describes_other_nodes_is_refused(
    record: ReleaseRecord, tmp_path: Path, edit: Callable[[dict], object]
) -> None:
    with pytest.raises(ReleaseFileError):
        open_record(edited(tmp_path, record, edit))


def test_measurements_of_another_schema_are_refused(record: ReleaseRecord, tmp_path: Path) -> None:
    line = Schema([Ordinal("a", 1, 45)])
    foreign = refined_release(line, np.full(45, 3), epsilon=2, seed=9).record
    with pytest.raises(ReleaseFileError, match="another schema"):
        dataclasses.replace(record, measurements=foreign.measurements)
    save_record(record, tmp_path / "changed.veil")
    manifest = json.loads(entries_of(tmp_path / "changed.veil")["veil.json"])
    manifest["schema"] = line.to_dict()
    write_entries(
        tmp_path / "changed.veil",
        entries_of(tmp_path / "changed.veil") | {"veil.json": json.dumps(manifest).encode()},
    )
    with pytest.raises(ReleaseFileError, match="another schema"):
        open_record(tmp_path / "changed.veil")


def test_a_part_with_other_noise_than_the_statement_declares_is_refused(record: ReleaseRecord) -> None:
    part = record.measurements[0]
    louder = NoisyMeasurement(part.operator, part.values, dataclasses.replace(part.noise, scale=part.noise.scale * 2))
    with pytest.raises(ReleaseFileError, match="other noise"):
        dataclasses.replace(record, measurements=(louder,))


def test_nodes_in_the_file_are_those_that_were_measured(record: ReleaseRecord, tmp_path: Path) -> None:
    save_record(record, tmp_path / "refined.veil")
    arrays = read_archive(tmp_path / "refined.veil").arrays
    for number, part in enumerate(record.measurements):
        assert isinstance(part.operator, NodeCounts)
        np.testing.assert_array_equal(arrays[f"measurements/{number}/nodes"], part.operator.chosen)
