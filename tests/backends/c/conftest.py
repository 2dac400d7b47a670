"""Compiles C with the header of kernels, into a cache that the tests of one run share."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from dsfc.backends.c.reserved_names import header
from dsfc.backends.c.runtime.native import _library, _Native

sys.path.append(str(Path(__file__).parents[2] / "kernel_ir"))


@pytest.fixture(autouse=True, scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def build(kernel_cache: None) -> Callable[..., ctypes.CDLL]:
    """Compiles a C text behind the header: text, in double or not, dtype of tensors."""
    reason = _Native("", {}).why_never()
    if reason:
        pytest.skip(reason)

    @cache
    def make(text: str, is_double: bool, given: str = "REAL_") -> ctypes.CDLL:
        defines = (f"REAL_IS_DOUBLE={int(is_double)}", f"GIVEN_IS={given}")
        return _library(f"{header()}\n{text}", defines)

    return make
