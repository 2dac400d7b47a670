"""Runs the command line: `python -m dsfc`."""

from __future__ import annotations

import sys

from dsfc.cli import main

if __name__ == "__main__":
    sys.exit(main())
