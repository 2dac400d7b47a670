"""`dsfc check` on a text that is open in an editor, in a process of its own.

There the bounds of the command line on time and memory hold, and a text that takes long holds up
nobody who types.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE

from dsfc.language_server.document import Document
from dsfc.language_server.findings import Finding, findings_of_check

# -P: a file of the user's folder is not imported, though it were called click.py.
_COMMAND = ("-P", "-X", "utf8", "-m", "dsfc", "check", "--format", "json", "-")


async def check(document: Document) -> tuple[Finding, ...]:
    """Returns everything that `dsfc check` says of a text, its claims decided.

    Bases are looked up beside the file of the text. Ends the process if it is cancelled.
    """
    folder = document.library.folder
    process = await asyncio.create_subprocess_exec(
        sys.executable, *_COMMAND, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=folder
    )
    try:
        out, err = await process.communicate(document.source.text.encode("utf-8", "replace"))
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    try:
        return findings_of_check(document.source, out.decode())
    except ValueError:  # it was ended by its bounds, and says so on the other stream
        said = err.decode(errors="replace").strip() or "it ended without a word"
        return (Finding(document.source.span(0, 0), "dsfc check", True, said),)
