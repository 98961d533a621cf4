"""An option that takes one value is given once: of two values, one would be dropped without a word."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from support.command_line import caller
from veilcube.cli.app import app


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it."""
    if not hasattr(command, "list_commands"):
        yield words, command
        return
    for name in command.list_commands(None):
        yield from commands(command.get_command(None, name), (*words, name))


EVERY_OPTION = [
    (words, command, param)
    for words, command in commands(typer.main.get_command(app))
    for param in command.params
    if param.param_type_name == "option"
]
ONE_VALUE = [entry for entry in EVERY_OPTION if not entry[2].is_flag and not entry[2].multiple]
OTHERS = [entry for entry in EVERY_OPTION if entry not in ONE_VALUE]


def values_of(param: Any) -> list[str]:
    return ["1"] * param.nargs


def named(entries: list[tuple[tuple[str, ...], Any, Any]]) -> list[str]:
    return [f"{' '.join(words)} {param.opts[0]}" for words, _, param in entries]


def test_all_commands_are_looked_at() -> None:
    assert {"query", "plan", "release", "allow", "integrate"} <= {words[-1] for words, *_ in EVERY_OPTION}
    assert len(ONE_VALUE) > 40
    assert any(param.multiple for _, _, param in OTHERS)


@pytest.mark.parametrize(
    ("words", "command", "param"),
    ONE_VALUE,
    ids=named(ONE_VALUE),
)
@pytest.mark.parametrize("is_joined", [False, True])
def test_a_second_value_is_refused(
    words: tuple[str, ...], command: Any, param: Any, is_joined: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["x"] * sum(other.param_type_name == "argument" and other.required for other in command.params)
    values = values_of(param)
    second = [f"{param.opts[0]}={values[0]}"] if is_joined and len(values) == 1 else [param.opts[0], *values]
    done = caller(capfd)(*words, *arguments, param.opts[0], *values, *second)
    assert done.code == 2
    assert f"{param.opts[0]} was given twice" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(("words", "command", "param"), OTHERS, ids=named(OTHERS))
def test_flags_and_lists_may_be_repeated(words: tuple[str, ...], command: Any, param: Any) -> None:
    assert not param.secondary_opts  # a flag and its opposite would contradict each other
    given = [param.opts[0], *([] if param.is_flag else values_of(param))]
    context = command.make_context(words[-1], [*given, *given], resilient_parsing=True)  # parses and runs nothing
    if param.multiple:
        assert len(context.params[param.name]) == 2


def test_help_is_shown_whatever_else_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert "Usage" in caller(capfd)("query", "--where", "a", "--where", "b", "--help").out


def test_two_estimators_are_refused_as_one_json_object(capfd: pytest.CaptureFixture[str]) -> None:
    done = caller(capfd)("query", "x.veil", "--estimator", "best", "--estimator", "posterior", "--json")
    assert (done.code, done.err) == (2, "")
    assert "--estimator was given twice" in done.out
