"""A layer around a mixer: it takes and gives [B, L, d], and its parts are modules of PyTorch."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from own_inputs import OWN_INPUTS
from torch import Tensor, nn

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.layer_parts import Gate, LayerParts, Norm

Compiled = Callable[..., ModuleType]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder = tmp_path_factory.mktemp("layers")
    modules: dict[str, ModuleType] = {}

    def compile_once(name: str, body: str | None = None) -> ModuleType:
        if name not in modules:
            spec = name
            if body is not None:
                path = folder / f"{name}.dsf"
                path.write_text(f"mixer {name} {{\n{body}\n}}\n", encoding="utf-8")
                spec = str(path)
            modules[name] = dsfc.import_module(
                dsfc.compile(spec, out=folder / f"{name}_.py", layer=True)
            )
        return modules[name]

    return compile_once


@pytest.fixture
def gla(compiled: Compiled) -> ModuleType:
    return compiled("gla")


def made(module: ModuleType, **options: object) -> nn.Module:
    torch.manual_seed(0)
    layer: nn.Module = module.GlaLayer(8, h=2, dtype=torch.float64, **options)
    return layer


def tokens(*shape: int) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape, 8, dtype=torch.float64)


def test_the_mixer_is_followed_by_norm_gate_and_output_map(gla: ModuleType) -> None:
    layer, u = made(gla, norm="rms", gate="silu", bias=True), tokens(2, 5)
    nn.init.normal_(layer.norm.weight)
    q, k, v = ((u @ m.weight.T + m.bias) for m in (layer.W_Q, layer.W_K, layer.W_V))
    low = u @ layer.W_1.weight.T + layer.W_1.bias
    mixed = layer.mixer(*(x.unflatten(-1, (2, 4)) for x in (q, k, v)), low)
    normed = mixed / (mixed.square().mean(-1, keepdim=True) + 1e-5).sqrt() * layer.norm.weight
    gate = u @ layer.gate_proj.weight.T + layer.gate_proj.bias
    gated = normed.reshape(2, 5, 8) * gate / (1 + torch.exp(-gate))
    wanted = gated @ layer.out_proj.weight.T + layer.out_proj.bias
    torch.testing.assert_close(layer(u), wanted)


@pytest.mark.parametrize("norm", [None, *Norm])
@pytest.mark.parametrize("gate", [None, *Gate])
def test_a_sequence_in_parts_is_the_sequence(
    gla: ModuleType, norm: str | None, gate: str | None
) -> None:
    layer, u = made(gla, norm=norm, gate=gate), tokens(2, 6)
    whole, last = layer(u, return_state=True)
    assert whole.shape == u.shape and layer.output_shape == (8,)
    first, state = layer(u[:, :3], return_state=True)
    token, state = layer.step(u[:, 3], state)
    rest, states = layer.step_k(u[:, 4:], state)
    torch.testing.assert_close(torch.cat((first, token.unsqueeze(1), rest), 1), whole)
    torch.testing.assert_close(states.at(2).S, last.S)


def test_masked_tokens_give_0_and_packs_are_their_sequences(gla: ModuleType) -> None:
    layer, u = made(gla, norm="layer", gate="sigmoid", bias=True), tokens(1, 7)
    nn.init.normal_(layer.norm.bias)
    mask = torch.tensor([[True, True, False, True, True, True, False]])
    y = layer(u, mask=mask)
    assert bool((y[~mask] == 0).all())
    torch.testing.assert_close(y[mask], layer(u[mask].unsqueeze(0))[0])
    packed = layer(u, cu_seqlens=torch.tensor([0, 3, 7]))
    torch.testing.assert_close(packed, torch.cat((layer(u[:, :3]), layer(u[:, 3:])), 1))


def test_every_parameter_has_a_gradient_and_is_drawn_afresh(gla: ModuleType) -> None:
    layer = made(gla, norm="rms", gate="silu", bias=True)
    layer(tokens(2, 4)).square().sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    old = {name: p.clone() for name, p in layer.named_parameters() if name.endswith("weight")}
    layer.reset_parameters()
    drawn = {name for name, x in old.items() if not torch.equal(x, layer.get_parameter(name))}
    assert drawn == {*old} - {"norm.weight"}
    assert 0.01 < float(layer.W_Q.weight.detach().std()) < 0.03  # as the spec says


def test_lists_name_parameters_of_the_layer(gla: ModuleType) -> None:
    layer = made(gla, norm="rms", gate="silu")
    assert layer.float32_parameters == ("mixer.b_alpha",)
    assert layer.no_weight_decay == ("mixer.b_alpha", "norm.weight")
    names = dict(layer.named_parameters())
    assert {*layer.no_weight_decay, *layer.head_axes} <= set(names)
    heads = 2
    for name, axis in layer.head_axes.items():
        assert names[name].shape[axis] % heads == 0


def test_layers_of_some_heads_each_add_up(gla: ModuleType) -> None:
    layer, u = made(gla, norm="rms", gate="silu"), tokens(2, 5)
    parts = []
    for rank in range(2):
        part = gla.GlaLayer(8, h=1, n=4, p=4, norm="rms", gate="silu", dtype=torch.float64)
        axes = layer.head_axes
        part.load_state_dict({
            name: x.chunk(2, axes[name])[rank] if name in axes else x
            for name, x in layer.state_dict().items()
        })  # fmt: skip
        parts.append(part(u))
    torch.testing.assert_close(sum(parts), layer(u))


def test_a_cast_leaves_what_feeds_a_decay(gla: ModuleType) -> None:
    layer = gla.GlaLayer(8, h=2).bfloat16()
    assert layer.mixer.b_alpha.dtype == torch.float32
    assert layer(tokens(1, 3).bfloat16()).dtype == layer.out_proj.weight.dtype == torch.bfloat16


@pytest.mark.parametrize("norm", Norm)
def test_under_autocast_the_norm_computes_in_the_dtype_of_its_weights(
    gla: ModuleType, norm: str
) -> None:
    """PyTorch warns of a norm of bfloat16 with weights in float32; warnings are errors here."""
    layer, u = gla.GlaLayer(8, h=2, norm=norm), tokens(1, 5).float()
    layer.norm.register_forward_hook(lambda _, given, y: seen.extend((given[0].dtype, y.dtype)))
    seen: list[torch.dtype] = []
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(u)
    assert y.dtype == torch.bfloat16 and seen == [torch.float32] * 2
    wide = layer(u).detach()
    torch.testing.assert_close(y.float(), wide, rtol=0, atol=0.05 * float(wide.abs().max()))


def test_wrong_parts_are_refused(gla: ModuleType) -> None:
    with pytest.raises(ValueError, match="norm is rms, layer or None, not 'batch'"):
        gla.GlaLayer(8, norm="batch")
    with pytest.raises(ValueError, match="gate is silu, sigmoid or None, not 'relu'"):
        gla.GlaLayer(8, gate="relu")


def test_a_map_that_is_wrapped_takes_effect(gla: ModuleType) -> None:
    class Lora(nn.Module):
        def __init__(self, base: nn.Linear) -> None:
            super().__init__()
            self.base, self.delta = base, nn.Linear(8, 8, bias=False, dtype=torch.float64)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.base(x) + self.delta(x)
            return y

    layer, u = made(gla), tokens(2, 4)
    wanted = made(gla)
    layer.W_Q = Lora(layer.W_Q)
    with torch.no_grad():
        wanted.W_Q.weight += layer.W_Q.delta.weight
    torch.testing.assert_close(layer(u), wanted(u))
    layer(u).sum().backward()
    assert layer.W_Q.delta.weight.grad is not None


def test_each_of_several_inputs_has_a_map_and_heads_come_first(compiled: Compiled) -> None:
    module = compiled("own_inputs", OWN_INPUTS)
    parameters = inspect.signature(module.OwnInputsLayer).parameters
    assert list(parameters)[:4] == ["d", "p", "h", "bias_"]
    layer = module.OwnInputsLayer(6, p=3, h=2, bias_=5, norm="rms", dtype=torch.float64)
    assert layer.mixer.output_shape == (3, 2)
    u = torch.randn(2, 4, 6, dtype=torch.float64)
    q, k = (m(u).unflatten(-1, (2, 5)) for m in (layer.q_proj, layer.k_proj))
    mixed = layer.mixer(q, k, layer.v_proj(u).unflatten(-1, (3, 2)))
    torch.testing.assert_close(layer(u), layer.out_proj(layer.norm(mixed.mT).flatten(2)))
    assert {n: a for n, a in layer.head_axes.items() if "proj" in n} == {
        "q_proj.weight": 0,
        "k_proj.weight": 0,
        "out_proj.weight": 1,
    }
    with pytest.raises(ValueError, match="axis of size 6"):
        layer(u[..., :5])


def test_a_mixer_of_later_tokens_has_a_layer_without_step(compiled: Compiled) -> None:
    layer = compiled("dlr_bidirectional").DlrBidirectionalLayer(4, n=2, m=2)
    assert layer(torch.randn(2, 5, 4)).shape == (2, 5, 4)
    with pytest.raises(ValueError, match="E-STEP"):
        layer.step(torch.randn(2, 4), None)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("dims d\ninput u : d; v : d positive\ny = u * v", "its input v is positive"),
        ("dims c, d\ninput u : c\nparam W : c -> d\ny = W u", "d is another axis than the width"),
    ],
)
def test_a_mixer_that_no_layer_stands_around_is_refused(
    tmp_path: Path, body: str, problem: str
) -> None:
    path = tmp_path / "odd.dsf"
    path.write_text(f"mixer odd {{\n{body}\n}}\n", encoding="utf-8")
    with pytest.raises(DiagnosticError, match="no layer around odd") as refused:
        dsfc.load(path).module(layer=True)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "E-LAYER" and problem in diagnostic.message
    assert diagnostic.span.source.name.endswith("odd.dsf")


def test_every_mixer_says_the_shape_of_its_output(gla: ModuleType) -> None:
    mixer = gla.Gla(d=8, h=2, p=3)
    assert mixer.output_shape == (2, 3)
    assert math.prod(mixer.output_shape) == gla.GlaLayer(8, h=2, p=3).out_proj.in_features
    assert mixer.head_axes == {"W_2": 0, "b_alpha": 0}


def test_a_spec_says_norm_and_gate_unless_a_user_does(gla: ModuleType) -> None:
    layer = gla.GlaLayer(8, h=2)
    assert isinstance(layer.norm, nn.RMSNorm) and layer.gate == "silu"
    assert dsfc.load("gla").mixer.layer == LayerParts(Norm.RMS, Gate.SILU)
    bare = gla.GlaLayer(8, h=2, norm=None, gate=None)
    assert bare.norm is None and bare.gate_proj is None
