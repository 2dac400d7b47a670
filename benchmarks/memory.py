"""Memory of this process as the system counts it: what is resident, and the most that ever was."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def resident() -> int:
    """Returns the bytes that are resident now."""
    return _status("VmRSS") if _STATUS.exists() else peak()


def peak() -> int:
    """Returns the most bytes resident since `reset_peak`; elsewhere than on Linux, ever."""
    if _STATUS.exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> None:
    """Gives freed memory back to the system and starts counting the peak again."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    if _CLEAR.exists():
        _CLEAR.write_text("5")


def _status(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no {field}")
