"""Reads a folder of tables, questions and true counts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers.dpbench.arrays import InputError
from benchmarks.peers.many.coded import CodedTable, Conjunctions, Questions, Whole

KINDS = {"num": True, "cat": False}


def default_folder() -> Path | None:
    """Return the folder beside the project that holds the data, if there is one."""
    folder = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "many"
    return folder if folder.is_dir() else None


def names_of_tables(folder: Path, chosen: Sequence[str]) -> list[str]:
    """Return the tables of a folder that were asked for, the smallest first; all unless some were."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; --data names the folder that holds NAME.json and NAME.parquet")
    held = {path.stem: path.stat().st_size for path in folder.glob("*.parquet") if path.with_suffix(".json").is_file()}
    if not held:
        raise InputError(f"the folder {folder} holds no NAME.parquet with a NAME.json; use --generated")
    for name in chosen:
        if name not in held:
            raise InputError(f"there is no table {name} in {folder}; --table is one of {', '.join(sorted(held))}")
    return sorted(chosen or held, key=lambda name: (held[name], name))


def read_table(folder: Path, name: str) -> CodedTable:
    """Read the codes of a table; each must lie inside its domain."""
    facts = _read_json(folder / f"{name}.json")
    try:
        columns, sizes = tuple(facts["columns"]), tuple(facts["sizes"])
        is_ordered = tuple(KINDS[kind] for kind in facts["kinds"])
        codes = np.asfortranarray(pd.read_parquet(folder / f"{name}.parquet")[list(columns)].to_numpy(dtype=np.int64))
    except (KeyError, TypeError, ValueError, OSError) as problem:
        raise InputError(
            f"table {name} of {folder} cannot be read: {problem!r}; see --help for the format"
        ) from problem
    if not len(columns) == len(sizes) == len(is_ordered):
        raise InputError(f"{folder / name}.json must give as many sizes and kinds as columns")
    if not len(codes) or (codes < 0).any() or (codes >= np.array(sizes)).any():
        raise InputError(f"{folder / name}.parquet must hold codes from 0 to below the sizes in {name}.json")
    return CodedTable(name, columns, sizes, is_ordered, codes)


def read_questions(folder: Path, table: CodedTable) -> Questions:
    """Read the questions about a table with their true counts."""
    asked = _read_json(folder / f"{table.name}.workload.json")
    path = folder / f"{table.name}.truth.npz"
    try:
        tables = {
            kind: [tuple(axes) for axes in asked[word]]
            for kind, word in (("2way", "pairs"), ("3way", "triples"))
            if asked[word]
        }
        with np.load(path, allow_pickle=False) as truth:
            conjunctions = {
                f"range{number}": _conjunctions(asked["range"][number], truth[f"r{number}"])
                for number in sorted(asked["range"])
            }
    except (KeyError, TypeError, ValueError, OSError) as problem:
        raise InputError(
            f"the questions about {table.name} in {folder} cannot be read: {problem!r}; see --help for the format"
        ) from problem
    if not conjunctions:
        raise InputError(f"{table.name}.workload.json in {folder} must hold conjunctions under range")
    for kind, those in conjunctions.items():
        if those.low.shape != (len(those.truth), len(table.columns)) or those.high.shape != those.low.shape:
            raise InputError(f"{kind} of {table.name} in {folder} must have a true count and two ends on every column")
    return Questions(tables, conjunctions)


def _conjunctions(asked: Mapping[str, Any], truth: Whole) -> Conjunctions:
    return Conjunctions(np.array(asked["low"]), np.array(asked["high"]), truth)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(f"{path} cannot be read as JSON; see --help for the format") from problem
