"""Kernels of code cells are spoken to through sockets in a folder.

A port is looked for, let go, and taken by the kernel a moment later: of two pages that are read at
once, both kernels may be told the same one, and then neither answers.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from uuid import uuid4

import jupyter_client
from sphinx.application import Sphinx

_FOLDER = TemporaryDirectory(prefix="kernels-")


class _LocalKernelManager(jupyter_client.AsyncKernelManager):
    def __init__(self, **options: object) -> None:
        super().__init__(**options, transport="ipc", ip=f"{_FOLDER.name}/{uuid4().hex}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Takes the place of the manager that nbclient asks for."""
    jupyter_client.AsyncKernelManager = _LocalKernelManager
    return {"parallel_read_safe": True, "parallel_write_safe": True}
