"""Output of code cells in one piece.

A command's output reaches the notebook in pieces that may end within a line. MyST-NB puts a line
break behind each piece when it merges them; here they are joined as they came.
"""

from __future__ import annotations

import myst_nb.core.render as render
from nbformat import NotebookNode
from sphinx.application import Sphinx

_merged = render.coalesce_streams


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    first: dict[str, NotebookNode] = {}
    out = []
    for output in outputs:
        name = output.get("name") if output["output_type"] == "stream" else None
        if name in first:
            first[name]["text"] += output["text"]
            continue
        if name is not None:
            first[name] = output
        out.append(output)
    return _merged(out)


def setup(app: Sphinx) -> dict[str, bool]:
    """Takes the place of MyST-NB's merging."""
    render.coalesce_streams = _joined
    return {"parallel_read_safe": True, "parallel_write_safe": True}
