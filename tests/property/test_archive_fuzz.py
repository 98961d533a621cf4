"""However a release file is damaged, it is refused or read exactly right; nothing else can happen."""

import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from support.veil_files import NAME, entries_of, is_small, write_entries, write_small
from veilcube.errors import ReleaseFileError
from veilcube.record.archive import read_archive, write_archive


def sound_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_small(Path(folder) / "small.veil").read_bytes()


SOUND = sound_file()


def refusals(path: Path, damaged: Iterable[bytes]) -> int:
    """Open each version; return how many were refused. Any other error, or a wrong answer, fails the test."""
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            archive = read_archive(path)
        except ReleaseFileError:
            refused += 1
        else:
            assert is_small(archive)
    return refused


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    assert refusals(tmp_path / "cut.veil", (SOUND[:length] for length in range(len(SOUND)))) == len(SOUND)


def test_every_loss_of_the_first_bytes_is_refused(tmp_path: Path) -> None:
    assert refusals(tmp_path / "cut.veil", (SOUND[start:] for start in range(1, len(SOUND)))) == len(SOUND) - 1


def test_a_flipped_bit_in_any_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    bits = np.random.default_rng(11).integers(0, 8, size=len(SOUND))

    def flipped(position: int) -> bytes:
        content = bytearray(SOUND)
        content[position] ^= 1 << bits[position]
        return bytes(content)

    refused = refusals(tmp_path / "flip.veil", map(flipped, range(len(SOUND))))
    # Harmless are only the dates, versions and attributes of the entries, which no reader looks at.
    with zipfile.ZipFile(write_small(tmp_path / "sound.veil")) as archive:
        unread_bytes = len(archive.infolist()) * (6 + 6 + 2 + 2 + 6)
    assert len(SOUND) - unread_bytes <= refused < len(SOUND)


Edit = Callable[[bytes], bytes]


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """Overwrite, remove, repeat or insert a run of bytes."""
    start = draw(st.integers(0, len(SOUND)))
    length = draw(st.integers(0, 64))
    run = draw(st.binary(max_size=64))
    moved = draw(st.integers(0, len(SOUND)))
    return draw(
        st.sampled_from(
            [
                lambda content: content[:start] + run + content[start + len(run) :],
                lambda content: content[:start] + content[start + length :],
                lambda content: content[:start] + content[moved : moved + length] + content[start + length :],
                lambda content: content[:start] + content[moved : moved + length] + content[start:],
                lambda content: content[:start] + run + content[start:],
            ]
        )
    )


@settings(max_examples=400, deadline=None)
@given(changes=st.lists(edits(), min_size=1, max_size=4))
def test_any_patchwork_of_the_file_is_refused_or_harmless(changes: list[Edit]) -> None:
    content = SOUND
    for change in changes:
        content = change(content)
    with tempfile.TemporaryDirectory() as folder:
        refusals(Path(folder) / "patched.veil", [content])


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damage_inside_an_entry_whose_checksum_is_right_raises_nothing_else(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_small(Path(folder) / "small.veil")
        entries = entries_of(path)
        name = data.draw(st.sampled_from(sorted(entries)))
        position = data.draw(st.integers(0, len(entries[name])))
        run = data.draw(st.binary(max_size=8))
        entries[name] = entries[name][:position] + run + entries[name][position + len(run) :]
        write_entries(path, entries)
        try:
            archive = read_archive(path, memory_limit=10**6)
        except ReleaseFileError:
            return
        # A forger who also mends the checksums may write other numbers, but only into sound arrays.
        assert all(values.dtype == np.int64 for values in archive.arrays.values())


def test_bit_flips_in_a_file_of_many_chunks_are_refused_or_harmless(tmp_path: Path) -> None:
    generator = np.random.default_rng(12)
    values = generator.integers(-(2**40), 2**40, size=(3, 400_000))
    path = tmp_path / "many.veil"
    write_archive(path, {}, {NAME: values}, dimensions={NAME: ["a", "b"]})
    sound = path.read_bytes()
    refused = 0
    for position in generator.integers(0, len(sound), size=40):
        damaged = bytearray(sound)
        damaged[position] ^= 1 << generator.integers(0, 8)
        path.write_bytes(damaged)
        try:
            found = read_archive(path)
        except ReleaseFileError:
            refused += 1
        else:
            np.testing.assert_array_equal(found.arrays[NAME], values)
    assert refused >= 39


@settings(max_examples=150, deadline=None)
@given(
    values=hnp.arrays(
        dtype=st.sampled_from([np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32]),
        shape=hnp.array_shapes(min_dims=0, max_dims=6, max_side=5),
    )
)
def test_every_integer_array_reads_back_exactly(values: np.ndarray) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.veil"
        write_archive(path, {}, {NAME: values}, dimensions={NAME: [str(i) for i in range(values.ndim)]})
        np.testing.assert_array_equal(read_archive(path).arrays[NAME], values)
