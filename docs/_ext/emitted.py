"""An emitted module that pages can describe: `ssd`, compiled when these pages are built."""

from __future__ import annotations

import sys
import tempfile

from sphinx.application import Sphinx

import dsfc

MIXER = "ssd"


def _write(app: Sphinx) -> None:
    """Compiles it into a folder of its own, where autodoc finds it."""
    folder = tempfile.TemporaryDirectory(prefix="dsfc-docs-")
    app.connect("build-finished", lambda *_: folder.cleanup())
    dsfc.compile(MIXER, out=folder.name)
    sys.path.append(folder.name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Writes the module before pages are read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
