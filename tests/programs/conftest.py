"""The tests of programs and the script that records what they find share `elsewhere`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
