"""`--set` and the parameters of sets, which the registry of sets lists.

The registry is asked once a command with a `--set` parses its words or shows its help, so that
`rldp --help` imports nothing heavy.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.cli.arguments import ManyValuesCommand
from rldp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rldp.tables.table import Table
    from rldp.uncertainty import UncertaintySet
    from rldp.uncertainty.parameters import Parameter

_SET = "--set"
_OPTIONS = "rldp: parameters of sets"


@dataclass(frozen=True)
class ChosenSet:
    """What the command line says of F: its kind, if any, and its parameters as text."""

    kind: str | None = None
    given: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return self.kind is not None or bool(self.given)

    def check(self) -> None:
        """Refuse a kind or parameter that nobody knows, before data are read."""
        from rldp.uncertainty.registry import DEFAULT

        self._arguments(DEFAULT if self.kind is None else self.kind)

    def around(self, table: Table) -> UncertaintySet:
        """F around the frequencies of a table."""
        from rldp.uncertainty.registry import DEFAULT, set_around

        kind = DEFAULT if self.kind is None else self.kind
        return set_around(table, kind, self._arguments(kind))

    def for_blocks(self) -> tuple[Callable[..., UncertaintySet], float]:
        """The kind of set of every block of a questionnaire, and the α of all of them."""
        from rldp.uncertainty.base import ALPHA
        from rldp.uncertainty.registry import DEFAULT, offered

        kind = DEFAULT if self.kind is None else self.kind
        arguments = self._arguments(kind)
        alpha = arguments.pop(ALPHA.name, ALPHA.default)
        return partial(offered()[kind], **arguments), alpha

    def for_reports(self) -> tuple[str, float]:
        """The test of reports that has the name of a kind of set, and its level."""
        from rldp.uncertainty.base import ALPHA
        from rldp.uncertainty.evidence import TESTS

        kind = TESTS[0] if self.kind is None else self.kind
        if kind not in TESTS:
            raise ParameterError(
                f"Expected {_SET} among {', '.join(TESTS)} with --reports, got {kind!r}."
            )
        return kind, self._arguments(kind).get(ALPHA.name, ALPHA.default)

    def instead_of(self, F: UncertaintySet) -> UncertaintySet:
        """F with another kind or other parameters."""
        from rldp.uncertainty.registry import DEFAULT, kind_of, set_around

        kind = self.kind or (kind_of(F) if F.parameters else DEFAULT)
        return set_around(F.table, kind, F.arguments | self._arguments(kind))

    def _arguments(self, kind: str) -> dict[str, Any]:
        from rldp.uncertainty.registry import offered

        sets = offered()
        if kind not in sets:
            raise ParameterError(f"Expected {_SET} among {', '.join(sets)}, got {kind!r}.")
        parameters = {p.name: p for p in sets[kind].parameters}
        for name in sorted(self.given.keys() - parameters.keys()):
            owners = ", ".join(k for k, cls in sets.items() if name in _names(cls))
            raise ParameterError(f"{_option(name)} is for {_SET} {owners}, and the set is {kind}.")
        return {name: _argument(parameters[name], text) for name, text in self.given.items()}


def _kind(said: str | ChosenSet) -> ChosenSet:
    return said if isinstance(said, ChosenSet) else ChosenSet(said)


UNSAID = ChosenSet()
Uncertainty = Annotated[
    ChosenSet,
    typer.Option(
        _SET,
        parser=_kind,
        show_default=False,
        help="Distributions that may be true, around those of DATA (default: chi-square).",
    ),
]
OtherUncertainty = Annotated[
    ChosenSet,
    typer.Option(
        _SET,
        parser=_kind,
        show_default=False,
        help="Distributions that may be true (default: as the protocol has it, or chi-square).",
    ),
]


class SetCommand(ManyValuesCommand):
    """A command that, if it has `--set`, has the parameters of all sets as further options."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The declared options, and those of sets right after `--set`."""
        declared = super().get_params(ctx)
        place = next((i for i, option in enumerate(declared) if _SET in option.opts), None)
        if place is None:
            return declared
        if _OPTIONS not in ctx.meta:
            ctx.meta[_OPTIONS] = _set_options(declared[place])
        return [*declared[:place], *ctx.meta[_OPTIONS], *declared[place + 1 :]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put all that is said of the set together."""
        rest = super().parse_args(ctx, args)
        if _OPTIONS in ctx.meta:
            chosen, *others = ctx.meta[_OPTIONS]
            said = {option.name: ctx.params.pop(option.name).kind for option in others}
            given = {name: text for name, text in said.items() if text is not None}
            ctx.params[chosen.name] = ChosenSet(ctx.params[chosen.name].kind, given)
        return rest


def _set_options(template: Any) -> list[Any]:
    """`--set` with all kinds, and an option like it for each parameter of any of them."""
    from rldp.uncertainty.registry import offered

    sets = offered()
    chosen = copy.copy(template)
    chosen.metavar, chosen.help = "KIND", f"{template.help} One of {', '.join(sets)}."
    parameters = {p.name: p for cls in sets.values() for p in cls.parameters}
    options = [chosen]
    for name, parameter in parameters.items():
        option = copy.copy(template)
        option.name, option.opts = name, [_option(name)]
        default = parameter.default
        said = "" if default is None else f" (default: {parameter.text(default)})"
        option.metavar = "NUMBER" if parameter.is_number else "JSON|FILE"
        option.help = f"{parameter.help}{said}."
        options.append(option)
    return options


def _argument(parameter: Parameter, text: str) -> Any:
    """The value of a parameter; what is no number may stand in a file of this name."""
    if not parameter.is_number and Path(text).is_file():
        try:
            text = Path(text).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"Expected JSON in {text}, which cannot be read: {error}.") from None
    return parameter.given(text)


def _names(cls: type[UncertaintySet]) -> list[str]:
    return [parameter.name for parameter in cls.parameters]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
