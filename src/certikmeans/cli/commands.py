"""How commands are parsed and described, where typer's own way does not do."""

from __future__ import annotations

from collections import Counter
from typing import Any, final

from typer.core import TyperCommand, TyperOption

from certikmeans.cli.parameters import PANELS


@final
class StrictCommand(TyperCommand):
    """A command that refuses a second value for the same option, and lists options by topic.

    Of two values for one option, one would be lost silently. The topics are typer's panels,
    written as plain text: that needs no library which takes longer to load than the page to read.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look at the order of the options first, then parse as usual."""
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
