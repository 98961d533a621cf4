"""Writes the signatures in docs/reference/python.md from the code, so that they cannot drift.

The page is written by hand but for what stands between two markers: ``<!-- signatures: Schema Schema.from_toml -->``
and ``<!-- end of signatures -->``. Between them goes, for each name, its signature as the source has it and the first
sentence of its docstring. ``python tools/reference.py`` (or ``make reference``) writes them; a test fails when they are
out of date.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

Annotations: TypeAlias = dict[str, str]

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
MARKED = re.compile(r"(<!-- signatures: ([^>]*?) -->\n).*?(<!-- end of signatures -->)", re.DOTALL)
# What a user comes to hold without having made it, and where it is.
HELD = {
    "AuditReport": "veilcube.auditing",
    "KernelPCAModel": "veilcube.analyst.history",
    "MaxEntropyModel": "veilcube.analyst.history",
    "MeasuredRows": "veilcube.analyst",
    "ProtectedTable": "veilcube.curator",
}
ARRAYS = {"NDArray[np.float64]": "Floats", "NDArray[np.int64]": "Integers", "NDArray[Any]": "Floats | Integers"}


def render(page: str) -> str:
    """Return the page with every marked list of signatures written anew."""
    return MARKED.sub(lambda found: f"{found[1]}\n{_list_of(found[2].split())}\n{found[3]}", page)


def _list_of(names: list[str]) -> str:
    return "".join(f"- `{signature}`:\n  {words}\n" for signature, words in map(entry_of, names))


def entry_of(name: str) -> tuple[str, str]:
    """Return the signature and the sentence of a public name, or of a member such as ``Schema.from_toml``."""
    first, _, member = name.partition(".")
    owner = getattr(importlib.import_module(HELD.get(first, "veilcube")), first)
    if not member:
        return first + _called(owner), _sentence(owner)
    found = inspect.getattr_static(owner, member)
    if isinstance(found, staticmethod | classmethod):
        return name + _called(getattr(owner, member)), _sentence(found.__func__)
    if isinstance(found, property | cached_property):
        getter = found.fget if isinstance(found, property) else found.func
        assert getter is not None
        return f".{member}: {_annotations_of(getter)['return']}", _sentence(found)
    return f".{member}{_called(found)}", _sentence(found)


def _called(target: Callable[..., object]) -> str:
    """Return the arguments as the source writes them, and what comes back unless it is clear or nothing."""
    annotations = _annotations_of_class(target) if isinstance(target, type) else _annotations_of(target)
    shown = list(_arguments(inspect.signature(target), annotations))
    returned = "" if isinstance(target, type) else annotations.get("return", "None")
    return f"({', '.join(shown)}){'' if returned in ('', 'None') else f' -> {returned}'}"


def _arguments(signature: inspect.Signature, annotations: Annotations) -> Iterator[str]:
    """Yield each argument with its short annotation and default; names with an underscore are not for users."""
    shown = [one for one in signature.parameters.values() if not one.name.startswith("_") and one.name != "self"]
    before = None
    for parameter in shown:
        name, kind = parameter.name, parameter.kind
        if before is parameter.POSITIONAL_ONLY and kind is not before:
            yield "/"
        if kind is parameter.KEYWORD_ONLY and before not in (kind, parameter.VAR_POSITIONAL):
            yield "*"
        before = kind
        stars = "*" * (kind is parameter.VAR_POSITIONAL) + "**" * (kind is parameter.VAR_KEYWORD)
        annotated = f"{stars}{name}: {annotations[name]}"
        yield annotated if parameter.default is parameter.empty else f"{annotated} = {_shown(parameter.default)}"


def _shown(default: object) -> str:
    """Return a default as Python writes it; a member of an enumeration is given by its value."""
    shown = repr(default.value if isinstance(default, Enum) else default)
    return "..." if shown.startswith("<") else shown.replace("'", '"')


def _annotations_of_class(target: type) -> Annotations:
    """Return what the constructor's arguments are: of its own ``__init__``, or the fields of a dataclass."""
    written = vars(target).get("__init__")
    if written is not None and written.__qualname__ == f"{target.__qualname__}.__init__" and _has_source(written):
        return _annotations_of(written)
    found: Annotations = {}
    for base in reversed(target.__mro__[:-1]):
        (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        fields = (node for node in getattr(parsed, "body", []) if isinstance(node, ast.AnnAssign))
        found |= {ast.unparse(node.target): _short(node.annotation) for node in fields}
    return found


def _has_source(function: Callable[..., object]) -> bool:
    try:
        return bool(inspect.getsource(function))
    except OSError:  # what dataclasses write themselves is in no file
        return False


def _annotations_of(function: Callable[..., object]) -> Annotations:
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(parsed, ast.FunctionDef)
    given = parsed.args
    arguments = [
        *given.posonlyargs,
        *given.args,
        *given.kwonlyargs,
        *(one for one in (given.vararg, given.kwarg) if one is not None),
    ]
    found = {one.arg: _short(one.annotation) for one in arguments if one.annotation is not None}
    return found | {"return": _short(parsed.returns) if parsed.returns is not None else "None"}


def _short(annotation: ast.expr) -> str:
    """Return an annotation as text: names without their modules or quotes, literals by their values."""
    text = ast.unparse(annotation)
    text = re.sub(r"Literal\[([^]]*)\]", lambda found: " | ".join(found[1].replace("'", '"').split(", ")), text)
    for array, name in ARRAYS.items():
        text = text.replace(array, name)
    return re.sub(r"\b(?:pd|xr)\.(?=[A-Z])", "", text.replace("'", ""))


def _sentence(target: object) -> str:
    words = " ".join((inspect.getdoc(target) or "").split("\n\n")[0].split()).replace("``", "`")
    return re.split(r"(?<=[.])\s(?=[A-Z`])", words)[0]


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
