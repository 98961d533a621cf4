"""JSON as release files use it: strict both ways, so that text from a stranger can do no more than be refused."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"

MAX_JSON_BYTES = 16 * 2**20
MAX_JSON_DEPTH = 64


def dump_json(value: object) -> bytes:
    """Encode ``value`` as UTF-8 JSON that ``parse_json`` accepts; raises ``ValueError`` with the reason if not."""
    try:
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it holds a value that JSON cannot express ({error})") from error
    parse_json(encoded)
    return encoded


def parse_json(raw: bytes) -> JsonValue:
    """Decode JSON of bounded size and depth, with unique keys, finite numbers and well-formed text.

    Raises ``ValueError`` with the reason otherwise. Depth is bounded so that later code may walk the value recursively.
    """
    if len(raw) > MAX_JSON_BYTES:
        raise ValueError(f"it is longer than {MAX_JSON_BYTES:,} bytes")
    try:
        value: JsonValue = json.loads(
            raw.decode(),
            object_pairs_hook=_object_with_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except RecursionError as error:
        raise ValueError(f"it is nested more than {MAX_JSON_DEPTH} deep") from error
    _check_depth(value)
    if b"\\u" in raw:
        # An escape may spell half of a surrogate pair: text that cannot be printed or written. Encoding finds it.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _object_with_unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it names a key twice")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, which is not a number")


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("it holds a number that is too large")
    return value


def _check_depth(value: JsonValue) -> None:
    level: list[JsonValue] = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [child for parent in level for child in _containers(parent)]
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_JSON_DEPTH} deep")


def _containers(value: JsonValue) -> list[JsonValue]:
    children: Sequence[JsonValue] = ()
    if isinstance(value, dict):
        children = list(value.values())
    elif isinstance(value, list):
        children = value
    return [child for child in children if isinstance(child, dict | list)]
