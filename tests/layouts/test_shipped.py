"""Shipped layout maps beside the published layers, with random weights and tiny sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from published_gla import GatedLinearAttention
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import dsfc
from dsfc.api.published import Request, convert_published
from dsfc.diagnostics.report import DiagnosticError
from dsfc.layouts.read import load_layout, shipped_layouts
from dsfc.validate.reference import without_kernels

pytestmark = pytest.mark.ci

LENGTH = 9


class Wide(TorchFunctionMode):
    """Published programs calculate in float32 here and there: that is float64 under this mode."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.float:
            return args[0].double()
        wide = [torch.float64 if a is torch.float32 else a for a in args]
        named = {n: torch.float64 if a is torch.float32 else a for n, a in (kwargs or {}).items()}
        return func(*wide, **named)


def transformers(name: str, layer: str, config: str, *more: int, **settings: int) -> nn.Module:
    """A layer of transformers by its configuration."""
    pytest.importorskip("transformers")
    models = f"transformers.models.{name}"
    values = getattr(import_module(f"{models}.configuration_{name}"), config)(
        num_hidden_layers=1, **settings
    )
    module = f"{models}.modeling_{name}"
    with without_kernels(module):
        return getattr(import_module(module), layer)(values, *more)


LAYERS: Mapping[str, Callable[[], nn.Module]] = {
    "mamba": partial(
        transformers, "mamba", "MambaMixer", "MambaConfig", 0,
        hidden_size=10, intermediate_size=12, state_size=3, time_step_rank=2, conv_kernel=4,
    ),
    "mamba2": partial(
        transformers, "mamba2", "Mamba2Mixer", "Mamba2Config", 0,
        hidden_size=10, num_heads=5, head_dim=4, state_size=3, n_groups=1, chunk_size=4,
    ),
    "rwkv4": partial(
        transformers, "rwkv", "RwkvSelfAttention", "RwkvConfig",
        hidden_size=10, attention_hidden_size=10,
    ),
    "recurrent_gemma": partial(
        transformers, "recurrent_gemma", "RecurrentGemmaRecurrentBlock", "RecurrentGemmaConfig", 0,
        hidden_size=10, lru_width=12, num_attention_heads=3, conv1d_width=4,
    ),
    "qwen3_next": partial(
        transformers, "qwen3_next", "Qwen3NextGatedDeltaNet", "Qwen3NextConfig", 0,
        hidden_size=10, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=3,
        linear_value_head_dim=5,
    ),
    "gla": partial(GatedLinearAttention, d=10, h=2, n=3, p=4, r=5),
}  # fmt: skip
TOLD = {"qwen3_next": {"k": 2}}
"""Sizes that weights do not tell."""
SIZES = {
    "mamba": {"d": 10, "e": 12, "n": 3, "r": 2, "t": 4},
    "mamba2": {"d": 10, "h": 5, "n": 3, "p": 4, "t": 4},
    "rwkv4": {"d": 10},
    "recurrent_gemma": {"d": 10, "h": 3, "c": 4, "t": 4},
    "qwen3_next": {"d": 10, "h": 4, "n": 3, "p": 5, "t": 4},
    "gla": {"d": 10, "h": 2, "n": 3, "p": 4, "r": 5},
}


def made(name: str) -> nn.Module:
    """A published layer in float64 whose weights are random and large enough to be seen."""
    torch.manual_seed(0)
    layer = LAYERS[name]().double().eval()
    for p in layer.parameters():
        nn.init.normal_(p, 0.1, 0.4)
    return layer


def called(layer: nn.Module, name: str, u: Tensor) -> Tensor:
    more = ()
    if name == "recurrent_gemma":
        more = (torch.arange(u.shape[1]).expand(u.shape[:2]), None, False)
    with Wide():
        y = layer(u, *more)
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.share(1, ci=2)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", shipped_layouts())
def test_a_shipped_map_makes_the_published_layer(name: str, tmp_path: Path) -> None:
    """Outputs, gradients of the input and tokens from the first on agree; and back bit for bit."""
    theirs = made(name)
    weights = {f"model.layers.7.{n}": x for n, x in theirs.state_dict().items()}
    torch.save(weights, tmp_path / "theirs.pt")
    request = Request(name, tmp_path / "theirs.pt", tmp_path / "ours.pt", "model.layers.7.",
                      TOLD.get(name, {}))  # fmt: skip
    turned = convert_published(request)
    layout, _, _ = load_layout(name)
    assert (turned.compared is None) == (layout.reference is None)

    spec = dsfc.compile(layout.spec, out=tmp_path / "ours.py", layer=layout.layer)
    module = dsfc.import_module(spec)
    cls = getattr(module, module.__all__[0] + ("Layer" if layout.layer else ""))
    ours = cls(**SIZES[name], dtype=torch.float64)
    ours.load_state_dict(torch.load(tmp_path / "ours.pt", weights_only=True))
    u = torch.randn(2, LENGTH, 10, dtype=torch.float64, requires_grad=True)
    wanted, got = called(theirs, name, u), ours(u)
    torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)
    w = torch.randn_like(wanted)
    (want_du,), (du,) = (torch.autograd.grad((y * w).sum(), u) for y in (wanted, got))
    torch.testing.assert_close(du, want_du, rtol=1e-12, atol=1e-12)
    state = ours.initial_state(2)
    for i in range(LENGTH):
        token, state = ours.step(u[:, i], state)
        torch.testing.assert_close(token, wanted[:, i], rtol=1e-12, atol=1e-12)

    back = Request(name, tmp_path / "ours.pt", tmp_path / "back.pt", "model.layers.7.",
                   TOLD.get(name, {}), back=True)  # fmt: skip
    convert_published(back)
    written = torch.load(tmp_path / "back.pt", weights_only=True)
    assert written.keys() == weights.keys()
    assert all(torch.equal(written[n], weights[n]) for n in weights)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("rwkv4", {"mu_k]": "mu_v]", "mu_v]": "mu_k]"}),
        ("mamba", {', { op = "flip", axis = 1 }': ""}),
        ("recurrent_gemma", {'"recurrent_gemma_block"': '"griffin_block"'}),
        ("qwen3_next", {'"qwen3_next_block"': '"gated_deltanet_block"'}),
    ],
    ids=["swapped", "not flipped", "another first token", "nothing under the roots"],
)
def test_a_map_to_another_layer_is_seen(name: str, changes: dict[str, str], tmp_path: Path) -> None:
    """Each of these maps moves every number once; that the layers differ is seen in a run."""
    _, file, _ = load_layout(name)
    text = file.read_text(encoding="utf-8")
    for old in changes:
        assert text.count(old) == 1
        text = text.replace(old, f"<{old}>")
    for old, new in changes.items():
        text = text.replace(f"<{old}>", new)
    (tmp_path / "wrong.toml").write_text(text, encoding="utf-8")
    torch.save(made(name).state_dict(), tmp_path / "theirs.pt")
    request = Request(str(tmp_path / "wrong.toml"), tmp_path / "theirs.pt", tmp_path / "ours.pt",
                      sizes=TOLD.get(name, {}), run_reference=True)  # fmt: skip
    with pytest.raises(DiagnosticError, match="the outputs differ by"):
        convert_published(request)
    assert not (tmp_path / "ours.pt").exists()
