"""Finds what could draw noise outside the mechanisms: every place where noise meets an exact value lives there.

Outside ``MAY_DRAW`` no module may hold a sampler. It would hold one if it imported one, from its home, through a door
or from a module that imported it; if it named one as an attribute; or if it named what mechanisms call the samplers
that they are given. On the private side nothing but the samplers reads any other source of random numbers either.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tools.house import House

# What each module imports, by the name it has there: from where, and its name there; none for a whole module.
Imports: TypeAlias = dict[str, dict[str, tuple[str, str]]]

SAMPLING, MECHANISMS, AUDITING = "veilcube.curator.sampling", "veilcube.curator.mechanisms", "veilcube.auditing"
# Who may hold a sampler, and why. Who joins needs a reason as good.
MAY_DRAW: Mapping[str, str] = {
    SAMPLING: "the samplers themselves",
    MECHANISMS: "where noise meets exact values, each with its claim beside it",
    AUDITING: "runs mechanisms on tables of its own making, with noise that it records, replays and lists",
}
# Where exact values are: there, random numbers of any other kind are suspect too.
PRIVATE_SIDE = ("veilcube.curator", "veilcube.session")
OTHER_SOURCES = {"random", "secrets", "urandom", "getrandom", "default_rng", "SystemRandom"}
NO_PROSE = re.compile(r"[\w.]+")
THE_PACKAGE = re.compile(r"(^|curator)\.sampling\b")


def held_samplers(house: "House") -> list[str]:
    """Return where a module that must not holds a sampler, or the private side another source of random numbers."""
    names, imports = _sampler_names(house), _imports(house)
    found: set[str] = set()
    for module, tree in house.trees.items():
        if not lies_in(module, *MAY_DRAW):
            for source, name in imports[module].values():
                if lies_in(_origin(house, imports, source, name), SAMPLING):
                    found.add(f"{module}: imports {name} from {source}" if name else f"{module}: imports {source}")
            found.update(f"{module}: names {name}" for name in _identifiers(tree) if name in names)
            found.update(
                f"{module}: names {text}" for text in _texts(tree) if text in names or THE_PACKAGE.search(text)
            )
        if lies_in(module, *PRIVATE_SIDE) and not lies_in(module, SAMPLING):
            found.update(f"{module}: draws by {name}" for name in _identifiers(tree) if name in OTHER_SOURCES)
    for door, shown in house.exports.items():
        # The mechanisms show what they make, never what they draw with: who imports from them would hold it.
        if not lies_in(door, SAMPLING):
            origins = {name: _origin(house, imports, door, name) for name in shown}
            found.update(f"{door}: shows {name}" for name, origin in origins.items() if lies_in(origin, SAMPLING))
    return sorted(found)


def lies_in(module: str, *packages: str) -> bool:
    """Whether a module lies in one of these packages."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _sampler_names(house: "House") -> set[str]:
    """Return what samplers are called: at their door, and by the mechanisms that are given one."""
    names = set(house.exports.get(SAMPLING, {}))
    trees = [tree for module, tree in house.trees.items() if lies_in(module, MECHANISMS)]
    kinds = {node.target.id for tree in trees for node in ast.walk(tree) if _is_kind_of_sampler(node)}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) and node.annotation is not None and _mentions(node.annotation, kinds):
                names.add(node.arg)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.update({node.target.id} if _mentions(node.annotation, kinds) else ())
    return names | kinds


def _is_kind_of_sampler(node: ast.AST) -> bool:
    """Whether a node defines the type of a function that is passed to mechanisms: all of them draw."""
    return (
        isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and _mentions(node.annotation, {"TypeAlias"})
        and node.value is not None
        and _mentions(node.value, {"Callable"})
    )


def _mentions(expression: ast.expr, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(expression))


def _imports(house: "House") -> Imports:
    """Return what every module imports: under which name, from where, and what it is called there."""
    found: Imports = {}
    for module, tree in house.trees.items():
        here = found[module] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                here |= {alias.asname or alias.name: (alias.name, "") for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                source = _absolute(house, module, node)
                here |= {alias.asname or alias.name: (source, alias.name) for alias in node.names}
    return found


def _absolute(house: "House", module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    package = parts[: len(parts) - node.level + (1 if house.is_door(module) else 0)]
    return ".".join([*package, *([node.module] if node.module else [])])


def _origin(house: "House", imports: Imports, module: str, name: str) -> str:
    """Return where a name comes from, behind all doors and all modules that import it themselves."""
    seen: set[tuple[str, str]] = set()
    while (module, name) not in seen:
        seen.add((module, name))
        shown = house.exports.get(module, {})
        module, name = (shown[name], name) if name in shown else imports.get(module, {}).get(name, (module, name))
    return f"{module}.{name}" if f"{module}.{name}" in house.trees else module


def _identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(source), names=aliases):
                yield source
                yield from (alias.name for alias in aliases)


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield texts that may be names: what is imported or looked up by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NO_PROSE.fullmatch(node.value):
            yield node.value
