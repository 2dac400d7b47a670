"""A layer beside the mixer that its spec writes, both as emitted."""

from __future__ import annotations

import inspect
from types import ModuleType

import torch

from dsfc.validate.surface import surface


def is_its_mixer(module: ModuleType, layered: ModuleType) -> None:
    """Values and gradients agree in float64 to rounding, and each holds the other's weights."""
    found = surface(module)
    (input_name,) = found.inputs
    sizes = dict(found.sizes)
    width = found.inputs[input_name][-1]
    cls = getattr(layered, f"{found.cls.__name__}Layer")
    given = {n: sizes[n] for n in inspect.signature(cls).parameters if n in sizes and n != "d"}
    torch.manual_seed(0)
    mixer = found.cls(**sizes, dtype=torch.float64)
    layer = cls(width, **given, norm=None, gate=None, dtype=torch.float64)
    weights = layer.mixer_weights()
    assert {n: x.shape for n, x in weights.items()} == {
        n: x.shape for n, x in mixer.state_dict().items()
    }
    mixer.load_state_dict(weights)
    u = torch.rand(2, 5, width, dtype=torch.float64)
    plain, whole = u.clone().requires_grad_(), u.clone().requires_grad_()
    y, wanted = layer(whole), layer._after(plain, mixer(plain))
    torch.testing.assert_close(y, wanted)
    (grad,) = torch.autograd.grad(y.square().sum(), whole)
    (wanted_grad,) = torch.autograd.grad(wanted.square().sum(), plain)
    torch.testing.assert_close(grad, wanted_grad)
    mixer.reset_parameters()
    layer.load_mixer_weights(mixer.state_dict())
    torch.testing.assert_close(layer(u), layer._after(u, mixer(u)))
    if found.causal:
        first, state = layer(u[:, :2], return_state=True)
        token, state = layer.step(u[:, 2], state)
        rest = layer(u[:, 3:], state)
        torch.testing.assert_close(torch.cat((first, token.unsqueeze(1), rest), 1), layer(u))
