"""Texts with a mark where the caret is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.language_server.document import Document, document
from dsfc.mixer.library import Library
from dsfc.source import Source

sys.path.insert(0, str(Path(__file__).parent))

CARET = "‸"

Open = Callable[[str], tuple[Document, int]]


@pytest.fixture
def open_text() -> Open:
    """Reads a text that lies in no folder; gives it with the offset of the caret, 0 without one."""

    def call(text: str) -> tuple[Document, int]:
        source = Source("<text>", text.replace(CARET, ""))
        return document(source, Library()), max(text.find(CARET), 0)

    return call
