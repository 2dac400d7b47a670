"""Models of tests; all but those of `test_build.py` need the library transformers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from models import HYBRID, OTHERS, QUICK, made, written


@pytest.fixture(scope="session")
def modules_of_models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Where transformers keeps the code of models that it loads."""
    dynamic = pytest.importorskip("transformers.dynamic_module_utils")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dynamic, "HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
        patched.setattr(sys, "path", [*sys.path])
        yield


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(name, marks=pytest.mark.ci) for name in (*QUICK, HYBRID)),
        *(pytest.param(name, marks=pytest.mark.full) for name in OTHERS),
    ],
)
def path(
    request: pytest.FixtureRequest,
    modules_of_models: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of a model of one mixer, or of several."""
    pattern = request.param.split(",")
    return written(tmp_path_factory.mktemp("model"), pattern, blocks=max(2, len(pattern)))


@pytest.fixture(scope="module")
def model(path: Path) -> Any:
    """The model, in float64."""
    return made(path)
