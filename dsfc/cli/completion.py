"""`dsfc completion SHELL`: what makes a shell complete commands, options and specs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, shipped specs.

    \b
    bash  eval "$(dsfc completion bash)"        in ~/.bashrc
    zsh   eval "$(dsfc completion zsh)"         in ~/.zshrc, after compinit
    fish  dsfc completion fish | source         in ~/.config/fish/config.fish
    """  # noqa: D301 - to click a backspace starts a paragraph that stays as it is
    root = ctx.find_root()
    shell_class = get_completion_class(shell)
    assert shell_class is not None  # the three shells are click's own
    # Not `source()`: it starts bash to ask its version, and the script may be made anywhere.
    script = shell_class(root.command, {}, "dsfc", "_DSFC_COMPLETE")
    click.echo(script.source_template % script.source_vars())
