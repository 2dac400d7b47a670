"""The texts of a model's folder; that they run is for the other files."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import dsfc
from dsfc.api.model import causal_module
from dsfc.diagnostics.report import DiagnosticError
from dsfc.model.build import CONFIG, SIZE, Folder, folder, part
from dsfc.model.ir import Model


def of(*names: str, **sizes: int) -> Folder:
    parts = tuple(part(causal_module(dsfc.load(name)), sizes) for name in names)
    return folder(Model(parts, tuple(Path(n).stem for n in names), 64, 2, 100))


@pytest.fixture(scope="module")
def hybrid() -> Folder:
    return of("s6", "softmax", n=8, h=2)


@pytest.mark.ci
def test_the_configuration_holds_every_argument_of_every_layer(hybrid: Folder) -> None:
    config = json.loads(hybrid.texts[CONFIG])
    parts = {"norm": None, "gate": None, "bias": False}
    assert config["layer_arguments"]["softmax"] == {"h": 2, "n": 8, "p": None, **parts}
    assert config["layer_arguments"]["s6"] == {"n": 8, "r": None, **parts}
    assert (config["hidden_size"], config["num_hidden_layers"], config["vocab_size"]) == (
        64,
        2,
        100,
    )
    assert config["pattern"] == ["s6", "softmax"]
    for name in config["auto_map"].values():
        module, cls = name.split(".")
        assert f"class {cls}(" in hybrid.texts[f"{module}.py"]


def test_a_size_that_nobody_gives_is_a_number_in_the_configuration() -> None:
    assert json.loads(of("lru").texts[CONFIG])["layer_arguments"]["lru"]["n"] == SIZE


def test_files_import_torch_transformers_and_each_other(hybrid: Folder) -> None:
    texts = {**hybrid.texts, **{name: m.text for name, m in hybrid.modules.items()}}
    for name, text in texts.items():
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert f"{node.module}.py" in texts
            assert not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dsfc"))


def test_a_mixer_may_be_called_like_a_file_of_the_folder(tmp_path: Path) -> None:
    spec = tmp_path / "modeling_mixer.dsf"
    spec.write_text(
        "mixer modeling_mixer { dims d; input u : d; state s : d; s = 1/2 * s[i-1] + u; y = s }"
    )
    made = of(str(spec))
    assert list(made.modules) == ["modeling_mixer_.py"]
    assert "from .modeling_mixer_ import ModelingMixerLayer" in made.texts["modeling_mixer.py"]


@pytest.mark.parametrize(("name", "code"), [("dlr_bidirectional", "E-STEP")])
def test_what_has_no_next_token_is_refused_where_it_stands(name: str, code: str) -> None:
    with pytest.raises(DiagnosticError) as raised:
        causal_module(dsfc.load(name))
    (problem,) = raised.value.diagnostics
    assert problem.code == code and problem.span.line > 1
