"""`dsfc lsp`: a language server for editors."""

from __future__ import annotations

import click


@click.command(short_help="Serve an editor: mistakes, hover, completion, rename.")
@click.option(
    "--stdio", is_flag=True, help="Ignored; the server always uses standard input and output."
)
def lsp(stdio: bool) -> None:
    """Answer an editor in the Language Server Protocol, over standard input and output.

    Needs the extra lsp: pip install 'dsfc[lsp]'. Editors start it themselves.
    """
    try:
        from dsfc.language_server.server import serve
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException(
            "the language server needs pygls; install it: pip install 'dsfc[lsp]'"
        ) from None
    serve()
