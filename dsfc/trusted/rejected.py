"""What the kernel says of a certificate that does not show its claim."""

from __future__ import annotations


class Rejected(Exception):
    """The certificate does not show its claim; the text says which check failed."""
