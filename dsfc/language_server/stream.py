"""What an editor sends, with bounds on what is kept of it."""

from __future__ import annotations

from typing import BinaryIO

LONGEST_LINE = 1024
"""Bytes of a line of a header; those that are known have less than 80."""

LONGEST_MESSAGE = 16 * 1024**2
"""Bytes of one message, far above any text that is within the limits of a spec."""

_PIECE = 64 * 1024
_IGNORED = b"X-Too-Long: \r\n"
_NO_MESSAGE = b"null"


class Bounded:
    """A stream of messages; a line or a message that is too long is read past, in pieces."""

    def __init__(self, stream: BinaryIO) -> None:
        """Takes the stream to read from."""
        self._stream = stream

    def readline(self) -> bytes:
        """Returns the next line of a header; one without meaning in place of one too long."""
        line = self._stream.readline(LONGEST_LINE)
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            return line
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(_PIECE)
        return _IGNORED

    def read(self, size: int) -> bytes:
        """Returns the message of so many bytes; in place of one that is too long, JSON's null.

        Fewer bytes, or none, where the stream ends before.
        """
        if size <= LONGEST_MESSAGE:
            return self._stream.read(size)
        while size > 0:
            piece = self._stream.read(min(size, _PIECE))
            if not piece:
                return b""
            size -= len(piece)
        return _NO_MESSAGE
