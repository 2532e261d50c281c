"""Options that hold one value may be given once: of two values, one would be lost silently."""

from __future__ import annotations

from collections import Counter
from typing import Any, final

from typer.core import TyperCommand, TyperOption


@final
class OnceCommand(TyperCommand):
    """A command that refuses a second value for the same option."""

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
