"""Command-line parameters: options generated from dataclasses, their parsing, the help page."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, final, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from certikmeans._numbers import parse_fraction
from certikmeans.errors import Argument, InputError, Message
from certikmeans.options import Options

T = TypeVar("T")

# Options are listed under these titles, in this order.
INPUT, PAIRS, SIZES = "Input", "Pairs", "Sets and sizes"
PROOF, LIMITS, OUTPUT = "Proof", "Limits", "Output"
PANELS = (INPUT, PAIRS, SIZES, PROOF, LIMITS, OUTPUT)

AsJson = Annotated[
    bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the result as JSON.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="No progress, no summary.")
]


class OptionGroup(ABC):
    """Several options that a command takes as one argument; see `expand_groups`."""

    @abstractmethod
    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a keyword parameter for every option, with its annotation for typer."""

    @abstractmethod
    def build(self, values: Mapping[str, Any]) -> Any:
        """Return the argument of the command from the values of all options."""


@final
@dataclass(frozen=True, slots=True)
class FieldOptions(OptionGroup):
    """The fields of a dataclass as options; help texts come from its docstring.

    The metadata of a field may hold ``flags``, ``metavar``, ``panel``, ``choices``,
    ``environment``, a variable with the default value, and ``more``, a sentence for the command
    line alone. A field without metadata is no option.

    Parameters
    ----------
    kind : type
        The dataclass.
    only : sequence of str
        Names of the fields to use; by default all with metadata.
    parsers : mapping
        Functions that turn the text of an option into the value of its field.
    overrides : mapping
        Parameters of typer for fields that a command declares differently.
    """

    kind: type
    only: Sequence[str] = ()
    parsers: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def _fields(self) -> list[dataclasses.Field[Any]]:
        every = dataclasses.fields(self.kind)
        return [one for one in every if one.metadata and (not self.only or one.name in self.only)]

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a keyword parameter for every field."""
        types = get_type_hints(self.kind)
        descriptions: dict[str, str] = {}
        for base in reversed(self.kind.__mro__[:-1]):
            descriptions |= parameter_descriptions(base)
        for one in self._fields():
            annotation, default = types[one.name], one.default
            if get_origin(annotation) is tuple:  # typer collects repeated options in a list
                annotation, default = list[get_args(annotation)[0]] | None, None  # type: ignore[misc]
            elif one.name in self.parsers:
                annotation = str | None if default is None else str
                default = None if default is None else str(default)
            info = self.overrides.get(one.name) or _typer_info(one, descriptions[one.name])
            yield inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is dataclasses.MISSING else default,
                annotation=Annotated[annotation, info],
            )

    def build(self, values: Mapping[str, Any]) -> Any:
        """Return an instance of the dataclass."""
        arguments = {}
        for one in self._fields():
            value = values[one.name]
            if isinstance(one.default, tuple):
                value = tuple(value or ())
            elif one.name in self.parsers and value is not None:
                value = self.parsers[one.name](value)
            arguments[one.name] = value
        return self.kind(**arguments)


def _typer_info(one: dataclasses.Field[Any], description: str) -> Any:
    known = one.metadata
    choices = f"One of {', '.join(known['choices'])}." if "choices" in known else ""
    text = " ".join(filter(None, (description, choices, known.get("more"))))
    shared: dict[str, Any] = {"help": text, "metavar": known.get("metavar")}
    if known.get("argument"):
        return typer.Argument(**shared, show_default=False)
    if "choices" in known:
        shared["autocompletion"] = completion_of(known["choices"])
    shared["envvar"] = known.get("environment")
    return typer.Option(*known.get("flags", ()), **shared, rich_help_panel=known.get("panel"))


def completion_of(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """Return the function by which shells complete the value of an option.

    >>> completion_of(("auto", "sdp", "spectral"))("s")
    ['sdp', 'spectral']
    """

    def complete(incomplete: str) -> list[str]:
        return [one for one in choices if one.startswith(incomplete)]

    return complete


def parameter_descriptions(documented: Any) -> dict[str, str]:
    """Return the descriptions in the section of parameters of a numpydoc docstring.

    >>> parameter_descriptions(Options)["seed"]
    'Seed of all random choices.'
    """
    lines = (inspect.getdoc(documented) or "").splitlines()
    found: dict[str, str] = {}
    for line in lines[lines.index("Parameters") + 2 :]:
        if not line:
            break
        if line.startswith(" "):
            name = next(reversed(found))
            found[name] = f"{found[name]} {line.strip()}".strip().replace("``", "")
        else:
            found[line.split(" : ")[0]] = ""
    return found


def expand_groups(command: Callable[..., T]) -> Callable[..., T]:
    """Replace every parameter annotated with an `OptionGroup` by the options of the group."""
    hints = get_type_hints(command, include_extras=True)
    names = list(inspect.signature(command).parameters)
    groups: dict[str, OptionGroup] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        extras = getattr(hints[name], "__metadata__", ())
        group = next((one for one in extras if isinstance(one, OptionGroup)), None)
        if group is None:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=hints[name], kind=kind))
        else:
            groups[name] = group
            parameters.extend(group.parameters())
    expanded = inspect.Signature(parameters)

    @functools.wraps(command)
    def run(**given: Any) -> T:
        bound = expanded.bind(**given)
        bound.apply_defaults()
        values = dict(bound.arguments)
        values |= {name: group.build(values) for name, group in groups.items()}
        return command(**{name: values[name] for name in names})

    run.__signature__ = expanded  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def parse_seconds(text: str) -> float:
    """Parse a time limit; infinite if it is switched off.

    >>> parse_seconds("90"), parse_seconds("none"), parse_seconds("0")
    (90.0, inf, inf)
    """
    try:
        seconds = math.inf if text.strip().lower() == "none" else float(text) or math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0.0:
        raise InputError(
            Message(Argument("time_limit"), f": {text} is not a positive number of seconds"),
            hint="0 or none switches the limit off",
        )
    return seconds


def parse_slack(text: str) -> float:
    """Parse a slack and check its range."""
    from certikmeans.certainty.report import validate_slack

    return validate_slack(parse_fraction(text, "slack"))


def _parse_jobs(text: str) -> int | None:
    """Parse a number of threads; -1 stands for the default."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1 and number != -1:
        raise InputError(
            Message(Argument("jobs"), f": {text!r} is not a number of threads"),
            hint="give 1 or more, or -1 for one per core",
        )
    return None if number == -1 else number


def parse_numbers(text: str, name: str) -> float | tuple[float, ...]:
    """Parse a number, or several ones separated by commas.

    >>> parse_numbers("3", "size_min"), parse_numbers("3, 4", "size_min")
    (3.0, (3.0, 4.0))
    """
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError as error:
        raise InputError(
            Message(Argument(name), f": {text!r} is not a number"),
            hint="give a number, or one per cluster, separated by commas: 10,10,20",
        ) from error
    return numbers[0] if len(numbers) == 1 else numbers


_PARSERS: dict[str, Callable[[str], Any]] = {"gap": parse_fraction, "jobs": _parse_jobs}
SolverOptions = Annotated[Options, FieldOptions(Options, parsers=_PARSERS)]
# Commands that analyse a solution take fewer options than the one that finds it.
BasicSolverOptions = Annotated[
    Options, FieldOptions(Options, only=("gap", "time_limit", "jobs", "seed"), parsers=_PARSERS)
]
DEFAULT_SLACK = "0.001"
Slack = Annotated[
    str,
    typer.Option(
        metavar="S",
        rich_help_panel=PROOF,
        help="Certainty covers all labellings that cost at most this fraction more than the one "
        "found: 0.001, or with a percent sign, 0.1%.",
    ),
]


@final
class StrictCommand(TyperCommand):
    """A command that rejects a second value for the same option, and lists options by topic.

    Of two values for one option, one would be lost silently. The topics are typer's panels,
    written as plain text, since rich takes long to import.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reject repeated options, then parse as usual."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(order).items():
            if not isinstance(option, TyperOption) or option.is_flag or option.multiple:
                continue
            if times > 1:
                name = "/".join(option.opts)
                ctx.fail(f"{name} is given {times} times.\nhint: it takes one value")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of each panel under its title."""
        titles: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        titles |= {panel: [] for panel in PANELS} | {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            panel = getattr(parameter, "rich_help_panel", None) or "Options"
            titles["Arguments" if is_argument else panel].append(record)
        for title, records in titles.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
