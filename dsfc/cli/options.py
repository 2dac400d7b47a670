"""Options that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

FORM = "dsfc.format"
"""Where a context keeps the chosen format, for whoever prints mistakes in the end."""

TIMEOUT = "dsfc.timeout"
"""Where a context keeps how many seconds by the clock a command was given."""

DIAGNOSTICS = ("human", "json", "short", "sarif")
"""Formats of diagnostics; short is one line for each."""


def format_option(of: str, *own: str) -> Callable[[Any], Any]:
    """Returns the option `--format` of a command, which reaches it as `form`.

    All commands take the same formats. What a command prints has the forms human, json and `own`;
    in others it is human, and its mistakes on standard error are in the chosen one.

    Args:
        of: what the command prints, for the help.
        own: forms of that beside `human` and `json`.
    """
    forms = {"human", "json", *own}

    def kept(ctx: click.Context, param: click.Parameter, value: str) -> str:
        return value if _kept(ctx, param, value) in forms else "human"

    others = [form for form in DIAGNOSTICS if form not in forms]
    more = f"; {' and '.join(others)} are forms of mistakes" if others else ""
    return click.option(
        "--format",
        "form",
        type=click.Choice(DIAGNOSTICS),
        default="human",
        show_default=True,
        callback=kept,
        help=f"How to print {of}{more}.",
    )


def timeout_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command that searches for proofs the option that bounds its time."""
    option = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True, max=1e6),
        metavar="SECONDS",
        callback=_timed,
        expose_value=False,
        help="Stop after so many seconds by the clock, for each SPEC, and print what was decided "
        "until then.  [default: 10 seconds of processor time]",
    )
    return option(command)


def chosen_timeout() -> float | None:
    """Returns how many seconds the running command was given, None where it was given none."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(TIMEOUT)


def more_time() -> str:
    """Returns how to give the running command more time, as a sentence; empty if one cannot."""
    context = click.get_current_context(silent=True)
    known = context is not None and any(p.name == "timeout" for p in context.command.params)
    return "`--timeout SECONDS` allows more" if known else ""


def _timed(ctx: click.Context, param: click.Parameter, value: float | None) -> None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no number of seconds")
    ctx.meta[TIMEOUT] = value


def sizes_of(words: tuple[str, ...]) -> dict[str, int]:
    """Returns the sizes that `--size` gives by axis: 4 of h and 64 of n for `h=4,n=64`.

    Args:
        words: of the option, which may be repeated; each holds one size or several.

    Raises:
        UsageError: a word is no size, or two of them give one axis two sizes.
    """
    sizes: dict[str, int] = {}
    for part in (part for word in words for part in word.split(",")):
        name, equals, size = part.strip().partition("=")
        is_size = size.isascii() and size.isdecimal() and len(size) < 10 and int(size) > 0
        if not name or not equals or not is_size:
            raise click.UsageError(
                f"--size wants AXIS=SIZE with whole numbers from 1, such as h=4,n=64, not {part}"
            )
        if sizes.setdefault(name.strip(), int(size)) != int(size):
            raise click.UsageError(f"--size gives two sizes of {name}")
    return sizes


def require_parallel_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option that treats mixers without a parallel form as errors."""
    option = click.option(
        "--require-parallel",
        is_flag=True,
        help="Treat mixers that only run token by token as errors.",
    )
    return option(command)


def mistakes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command whose result has a format of its own the option for its diagnostics."""
    option = click.option(
        "--format",
        type=click.Choice(DIAGNOSTICS),
        default="human",
        show_default=True,
        callback=_kept,
        expose_value=False,
        help="Form of mistakes on standard error; short is one line each.",
    )
    return option(command)


def chosen_form() -> str:
    """Returns the format that the running command was asked for."""
    context = click.get_current_context(silent=True)
    form: str = "human" if context is None else context.meta.get(FORM, "human")
    return form


def _kept(ctx: click.Context, param: click.Parameter, value: str) -> str:
    ctx.meta[FORM] = value
    return value
