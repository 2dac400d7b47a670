"""Makes the helpers of this folder importable: `hand_built` (systems), `torch_system` (a judge)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
