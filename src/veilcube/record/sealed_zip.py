"""The zip container of a release file: written by the standard library, read by a strict reader of just that subset.

The reader accepts what ``add_entry`` makes and nothing else: stored entries that lie back to back from the first byte
of the file to the central directory, each with a local header that repeats its directory record, without comments,
encryption or extra fields (but for the 64-bit offsets of a large file). No two entries can then share bytes, nothing
can hide between them, every size is known to lie inside the file before memory is taken, and a zip program sees the
same entries as veilcube does. ``zipfile`` promises none of these when it reads.
"""

import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

MAX_ENTRIES = 65_535
_MAX_DIRECTORY_BYTES = 16 * 2**20
_STORED = 0
_SATURATED = 0xFFFF_FFFF  # a 32-bit field whose value stands in a 64-bit record

# Record layouts of the zip format (APPNOTE 6.3): sections 4.3.7, 4.3.12, 4.3.16, 4.3.15, 4.3.14 and 4.5.3.
_LOCAL_HEADER = struct.Struct("<4s2xHH4xLLLHH")
_DIRECTORY_RECORD = struct.Struct("<4s2x2xHH4xLLLHHHHHLL")
_END = struct.Struct("<4sHHHHLLH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2x2xLLQQQQ")
_OFFSET64 = struct.Struct("<HHQ")


@dataclass(frozen=True)
class Entry:
    """Where the bytes of one entry are, and what they must add up to."""

    name: str
    header_offset: int
    size: int
    crc: int


def add_entry(archive: zipfile.ZipFile, name: str, content: bytes | memoryview) -> None:
    """Append ``content`` under ``name``, stored as it is, with a fixed date so that equal releases are equal files."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_STORED
    info.external_attr = 0o644 << 16
    archive.writestr(info, content)


def read_directory(descriptor: int) -> Mapping[str, Entry]:
    """List the entries of an open zip file by name; raises ``ValueError`` with the reason if it is not sound."""
    file_size = os.fstat(descriptor).st_size
    count, start, size = _locate_directory(descriptor, file_size)
    if count > MAX_ENTRIES or size > _MAX_DIRECTORY_BYTES:
        raise ValueError(f"it declares more than {MAX_ENTRIES:,} entries")
    directory = _read(descriptor, start, size)
    entries: dict[str, Entry] = {}
    position, next_offset = 0, 0
    for _ in range(count):
        entry, position = _parse_record(directory, position)
        if entry.name in entries:
            raise ValueError("two of its entries have the same name")
        if entry.header_offset != next_offset:
            raise ValueError("its entries overlap or leave gaps")
        next_offset += _LOCAL_HEADER.size + len(entry.name) + entry.size
        entries[entry.name] = entry
    if position != size or next_offset != start:
        raise ValueError("its entries do not fill the file")
    return entries


def read_entry(descriptor: int, entry: Entry, *, max_bytes: int) -> bytes:
    """Read one entry and check it against its header and CRC-32; raises ``ValueError`` with the reason.

    Safe to call from several threads at once, because it does not move the position of the file.
    """
    if entry.size > max_bytes:
        raise ValueError(f"its entry {entry.name} is larger than {max_bytes:,} bytes")
    header_size = _LOCAL_HEADER.size + len(entry.name)
    header = _read(descriptor, entry.header_offset, header_size)
    fields = (b"PK\x03\x04", 0, _STORED, entry.crc, entry.size, entry.size, len(entry.name), 0)
    if _LOCAL_HEADER.unpack_from(header) != fields or header[_LOCAL_HEADER.size :] != entry.name.encode():
        raise ValueError(f"the header of its entry {entry.name} is damaged")
    content = _read(descriptor, entry.header_offset + header_size, entry.size)
    if zlib.crc32(content) != entry.crc:
        raise ValueError(f"its entry {entry.name} is damaged")
    return content


def _locate_directory(descriptor: int, file_size: int) -> tuple[int, int, int]:
    """Return the number of entries, and the start and size of the directory, which must end where its end record is."""
    end_start = file_size - _END.size
    if end_start < 0:
        raise ValueError("it is not a zip file, or its end is missing")
    end = _END.unpack(_read(descriptor, end_start, _END.size))
    signature, disk, directory_disk, count_here, count, size, start, comment_size = end
    if signature != b"PK\x05\x06" or comment_size:
        raise ValueError("it is not a zip file, or its end is missing")
    locator_start = end_start - _END64_LOCATOR.size
    if locator_start >= 0:
        locator = _END64_LOCATOR.unpack(_read(descriptor, locator_start, _END64_LOCATOR.size))
        if locator[0] == b"PK\x06\x07":
            end_start = locator_start - _END64.size
            if locator[1:] != (0, end_start, 1):
                raise ValueError("its end record is damaged")
            end64 = _END64.unpack(_read(descriptor, end_start, _END64.size))
            signature, record_size, disk, directory_disk, count_here, count, size, start = end64
            if signature != b"PK\x06\x06" or record_size != _END64.size - 12:
                raise ValueError("its end record is damaged")
    if disk or directory_disk or count_here != count or start + size != end_start:
        raise ValueError("its end record is damaged")
    return count, start, size


def _parse_record(directory: bytes, position: int) -> tuple[Entry, int]:
    """Parse the directory record at ``position``; return it and the position of the next one."""
    name_start = position + _DIRECTORY_RECORD.size
    if name_start > len(directory):
        raise ValueError("its directory is cut short")
    fields = _DIRECTORY_RECORD.unpack_from(directory, position)
    signature, flags, method, crc, stored_size, size, name_size, extra_size, comment_size, disk, *_, offset = fields
    extra_start, end = name_start + name_size, name_start + name_size + extra_size
    name = directory[name_start:extra_start].decode("latin-1")  # any bytes will decode, and only ASCII is let through
    extra = directory[extra_start:end]
    if signature != b"PK\x01\x02" or flags or disk or comment_size or end > len(directory):
        raise ValueError("its directory is damaged")
    if not (name.isascii() and name.isprintable()):
        raise ValueError("one of its entries has a name that is not plain text")
    if method != _STORED or stored_size != size:
        raise ValueError("it holds a compressed entry where only stored ones are allowed")
    if offset == _SATURATED and extra_size == _OFFSET64.size:
        kind, payload_size, offset = _OFFSET64.unpack(extra)
        extra = b"" if (kind, payload_size) == (1, 8) else extra
    if extra:
        raise ValueError("its directory has extra fields")
    return Entry(name, offset, size, crc), end


def _read(descriptor: int, offset: int, size: int) -> bytes:
    try:
        content = os.pread(descriptor, size, offset)
    except (OSError, OverflowError) as error:
        raise ValueError(f"it cannot be read ({error})") from error
    if len(content) != size:
        raise ValueError("it is cut short")
    return content
