"""Measures the house: how large its rooms are, whether imports enter by doors, and what still asks for types.

Run: make house. It ends with 1 if a bar is missed; tests/unit/test_house.py holds the same bars.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tools.samplers import MAY_DRAW, SAMPLING, held_samplers, lies_in

ROOT = Path(__file__).parents[1] / "src" / "veilcube"
PACKAGE = "veilcube"
MOST_IN_A_FOLDER, MOST_LINES, MOST_FUNCTION_LINES, MOST_TYPE_QUESTIONS = 12, 400, 40, 8
# Rooms whose classes nobody should have to tell apart by their type.
FAMILIES = ("planner", "operators", "laws")
SPEAKS_OF_FAMILIES = re.compile(r"strategy|design|operator|noise|candidate|option|plan\b")


@dataclass
class House:
    """All modules of the package, parsed once."""

    root: Path = ROOT
    trees: dict[str, ast.Module] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in sorted(self.root.rglob("*.py")):
            self.trees[self.name_of(path)] = ast.parse(path.read_text(encoding="utf-8"))

    def name_of(self, path: Path) -> str:
        """Return the dotted name of a module, of a package for its door."""
        parts = (PACKAGE, *path.relative_to(self.root).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def path_of(self, module: str) -> Path:
        """Return the file of a module."""
        path = self.root.joinpath(*module.split(".")[1:])
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def is_door(self, module: str) -> bool:
        """Whether a name is that of a package."""
        return self.root.joinpath(*module.split(".")[1:]).is_dir()

    @cached_property
    def rooms(self) -> dict[str, list[str]]:
        """The modules of each folder, doors left out."""
        found = defaultdict(list)
        for module in self.trees:
            if not self.is_door(module):
                found[module.rpartition(".")[0]].append(module)
        return found

    @cached_property
    def exports(self) -> dict[str, dict[str, str]]:
        """What each door shows, and from which module or door below it."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for path in self.root.rglob("__init__.pyi"):
            door = self.name_of(path)
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ImportFrom):
                    found[door] |= {alias.name: f"{door}.{node.module}" for alias in node.names}
        return found

    def home_of(self, module: str, name: str) -> str:
        """Return the module behind all doors where a name is defined."""
        while name in self.exports.get(module, {}):
            module = self.exports[module][name]
        return f"{module}.{name}" if f"{module}.{name}" in self.trees else module

    def imports(self) -> Iterator[tuple[str, str, str]]:
        """Yield who imports which name from which module or door."""
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
                    for alias in node.names:
                        yield module, str(node.module), alias.name

    def room_of(self, module: str) -> str:
        """Return the folder of a module; the exceptions, which lie beside the rooms, are a room of their own."""
        return module if self.is_door(module) or module.count(".") == 1 else module.rpartition(".")[0]

    def past_doors(self) -> list[str]:
        """Return imports that enter a package past its door."""
        found = []
        for importer, module, name in self.imports():
            room = importer if self.is_door(importer) else importer.rpartition(".")[0]
            parts = self.home_of(module, name).split(".")[:-1]
            packages = [".".join(parts[: size + 1]) for size in range(1, len(parts))]
            outer = next((one for one in packages if not f"{room}.".startswith(f"{one}.")), None)
            is_module = f"{module}.{name}" in self.trees
            if lies_in(module, SAMPLING) and lies_in(importer, *MAY_DRAW):
                continue  # the curator's door shows no sampler, for who may not draw
            if outer is not None and outer not in (module, f"{module}.{name}" if is_module else module):
                found.append(f"{importer}: from {module} import {name} (door: {outer})")
        return found

    def cycles(self) -> list[str]:
        """Return pairs of folders that need each other, directly or through others."""
        needs: dict[str, set[str]] = defaultdict(set)
        for importer, module, name in self.imports():
            room, target = self.room_of(importer), self.room_of(self.home_of(module, name))
            if target != room:
                needs[room].add(target)
        reach = {room: _reached(needs, room) for room in list(needs)}
        return sorted(f"{a} <-> {b}" for a in reach for b in reach[a] if a < b and a in reach.get(b, set()))

    def type_questions(self) -> list[str]:
        """Return where code asks for the type, or for the attributes, of strategies, designs, operators and noise."""
        families = {
            node.name
            for module, tree in self.trees.items()
            if module.split(".")[1:2] and module.split(".")[1] in FAMILIES
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }
        return [
            f"{module}:{node.lineno}: {ast.unparse(node)[:90]}"
            for module, tree in self.trees.items()
            for node in _outside_equality(tree)
            if isinstance(node, ast.Call) and _asks_for_a_type(node, families)
        ]

    def functions(self) -> Iterator[tuple[str, int]]:
        """Yield every function with its length in lines, its docstring left out."""
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                    yield f"{module}.{node.name}", (node.end_lineno or 0) - first.lineno + 1

    def single_importers(self) -> list[str]:
        """Return modules that one other module imports, and nobody else."""
        importers: dict[str, set[str]] = defaultdict(set)
        for importer, module, name in self.imports():
            importers[self.home_of(module, name)].add(importer)
        return sorted(module for module, who in importers.items() if len(who) == 1 and not self.is_door(module))


def _outside_equality(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all nodes but those of ``__eq__``, which Python hands objects of any type."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        left += [one for one in ast.iter_child_nodes(node) if getattr(one, "name", "") != "__eq__"]


def _asks_for_a_type(call: ast.Call, families: set[str]) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name == "isinstance":
        return any(isinstance(part, ast.Name) and part.id in families for part in ast.walk(call.args[1]))
    return name in ("getattr", "hasattr") and bool(SPEAKS_OF_FAMILIES.search(ast.unparse(call.args[0])))


def _reached(needs: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        for room in needs.get(left.pop(), set()) - found:
            found.add(room)
            left.append(room)
    return found


def measured(house: House) -> dict[str, tuple[list[str], int]]:
    """Return for each bar what offends it, and how many may."""
    lines = {module: len(house.path_of(module).read_text(encoding="utf-8").splitlines()) for module in house.trees}
    crowded = [f"{room}: {len(modules)}" for room, modules in house.rooms.items() if len(modules) > MOST_IN_A_FOLDER]
    longest = [f"{name}: {size}" for name, size in house.functions() if size > MOST_FUNCTION_LINES]
    return {
        f"folders with more than {MOST_IN_A_FOLDER} modules": (crowded, 0),
        f"modules of more than {MOST_LINES} lines": ([f"{m}: {n}" for m, n in lines.items() if n > MOST_LINES], 0),
        f"functions of more than {MOST_FUNCTION_LINES} lines": (longest, 0),
        "imports past a door": (house.past_doors(), 0),
        "cycles between folders": (house.cycles(), 0),
        "samplers held outside the mechanisms": (held_samplers(house), 0),
        "questions for types of strategies, designs, operators, noise": (house.type_questions(), MOST_TYPE_QUESTIONS),
    }


def main() -> None:
    """Print the figures, and what offends with --all."""
    house, missed = House(), False
    modules = sum(map(len, house.rooms.values()))
    print(f"{modules} modules in {len(house.rooms)} folders; {len(house.single_importers())} with a single importer")
    for name, (found, most) in measured(house).items():
        missed |= len(found) > most
        print(f"{len(found):>4} {name} (at most {most}){'' if len(found) <= most else '  MISSED'}")
        if "--all" in sys.argv:
            print(*(f"       {one}" for one in sorted(found)), sep="\n")
    sizes = Counter(len(modules) for modules in house.rooms.values())
    print("folders by number of modules:", ", ".join(f"{size}: {count}" for size, count in sorted(sizes.items())))
    sys.exit(missed)


if __name__ == "__main__":
    main()
