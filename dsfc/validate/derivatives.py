"""Promises about derivatives of any order, and about functional transforms.

The functional form is differentiated in every tensor it takes: inputs, parameters by value, states.
A complex one is taken as its two parts, since PyTorch's functional transforms want real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad, jacrev, jvp, vmap

from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, worst_of
from dsfc.validate.surface import Surface, gradients, loss

_CHUNK = 2
_TIGHT = 1e-10


def gradcheck(surface: Surface) -> str:
    """First derivatives agree with differences, singly and batched."""
    leaves = _leaves(surface, 5)
    if not _depends(leaves):
        return "nothing has a gradient"
    for mode in surface.modes:
        # Number by number in one mode, along random directions in the others: modes agree among
        # themselves far more closely (`modes`) than with differences.
        torch.autograd.gradcheck(
            leaves.run(mode),
            leaves.tensors,
            check_batched_grad=True,
            fast_mode=mode != surface.modes[0],
        )
    return f"derivatives in {len(leaves.tensors)} tensors"


def gradgradcheck(surface: Surface) -> str:
    """Second derivatives agree with differences."""
    leaves = _leaves(surface, 3, batch=1)
    if not _depends(leaves):
        return "nothing has a gradient"
    for mode in surface.smooth:
        torch.autograd.gradgradcheck(leaves.run(mode), leaves.tensors, fast_mode=True)
    some = "" if surface.smooth == surface.modes else f", {', '.join(surface.smooth)} alone"
    return f"derivatives in {len(leaves.tensors)} tensors{some}"


def func_grad(surface: Surface) -> str:
    """`torch.func.grad` and `jacrev` give what autograd gives."""
    leaves = _leaves(surface, 5)
    names, tensors = leaves.names, leaves.tensors
    every = tuple(range(len(names)))
    worst = 0.0
    for mode in surface.modes:
        scalar = _scalar(leaves.run(mode))
        grads = gradients(scalar(*tensors), tensors)
        want = _named(names, grads)
        plain = tuple(x.detach() for x in tensors)
        for transform in (grad, jacrev):
            got = _named(names, transform(scalar, every)(*plain))
            worst = max(worst, agree(got, want, EXACT, f"{transform.__name__}, {mode}"))
    return worst_of(worst)


def hessian(surface: Surface) -> str:
    """`jacrev(jacrev(f))` is the Hessian of the definition, in inputs and parameters."""
    leaves = _leaves(surface, 3, batch=1, state=False)
    plain = {n: x.detach() for n, x in zip(leaves.names, leaves.tensors, strict=True)}
    kept = [n for n in leaves.names if n not in surface.states]
    states = leaves.values({n: plain[n] for n in surface.states})
    some = tuple(plain[n] for n in kept)
    every = tuple(range(len(kept)))

    def scalar_of(mode: str) -> Callable[..., Tensor]:
        def run(*xs: Tensor) -> Tensor:
            values = leaves.values(dict(zip(kept, xs, strict=True)))
            return loss(surface.functional(**values, **states, mode=mode, chunk=_CHUNK)[0])

        return run

    def definition(*xs: Tensor) -> Tensor:
        return loss(surface.reference(leaves.values(dict(zip(kept, xs, strict=True)))))

    want = _blocks(kept, torch.autograd.functional.hessian(definition, some))
    worst = 0.0
    for mode in surface.smooth:
        got = _blocks(kept, jacrev(jacrev(scalar_of(mode), every), every)(*some))
        worst = max(worst, agree(got, want, _TIGHT, mode))
    return f"{len(want)} blocks of the Hessian; {worst_of(worst)}"


def third_order(surface: Surface) -> str:
    """Third derivatives are those of the definition."""
    leaves = _leaves(surface, 2, batch=1, state=False)
    plain = {n: x.detach() for n, x in zip(leaves.names, leaves.tensors, strict=True)}
    names = [n for n in surface.arguments if n not in surface.states]
    states = leaves.values({n: plain[n] for n in surface.states})

    def third(run: Callable[..., Tensor]) -> Tensor:
        xs = {n: plain[n].clone().requires_grad_() for n in names}
        out = loss(run(leaves.values(xs)))
        for _ in range(3):
            parts = gradients(out, list(xs.values()), create_graph=True)
            out = torch.stack([(p * p).sum() for p in parts]).sum()
        return out.detach()

    want = {"third": third(lambda xs: surface.reference(xs))}
    worst = 0.0
    for mode in surface.smooth:
        run = lambda xs, m=mode: surface.functional(**xs, **states, mode=m, chunk=_CHUNK)[0]  # noqa: E731
        worst = max(worst, agree({"third": third(run)}, want, _TIGHT, mode))
    return worst_of(worst)


def forward_mode(surface: Surface) -> str:
    """`torch.func.jvp` is refused in one line that names `jacrev(jacrev(f))`."""
    leaves = _leaves(surface, 3)
    if not surface.calls(surface.sample(3)):
        return "no operator: PyTorch's own"
    plain = tuple(x.detach() for x in leaves.tensors)
    try:
        jvp(leaves.run("auto"), plain, plain)
    except NotImplementedError as e:
        if "jacrev(jacrev" not in str(e) or "\n" in str(e):
            raise BrokenPromiseError(f"jvp is refused without a way out: {e}") from e
        return ""
    raise BrokenPromiseError("jvp is not refused")


def vectorized(surface: Surface) -> str:
    """`vmap` over every tensor is a loop; so is `vmap(grad)`, with some tensors shared."""
    leaves = _leaves(surface, 5)
    names = leaves.names
    every = tuple(range(len(names)))
    plain = [x.detach() for x in leaves.tensors]
    worst = 0.0
    for mode in surface.modes:
        scalar = _scalar(leaves.run(mode))
        stacks = [torch.stack((x, 0.9 * x, 0.8 * x)) for x in plain]
        want = torch.stack([scalar(*(s[i] for s in stacks)) for i in range(3)])
        got = vmap(scalar)(*stacks)
        worst = max(worst, agree({"vmap": got}, {"vmap": want}, EXACT, mode))
        for offset in (0, 1):
            dims = tuple(None if (i + offset) % 2 else 0 for i in every)
            if all(d is None for d in dims):
                continue
            mixed = [s if d == 0 else x for s, x, d in zip(stacks, plain, dims, strict=True)]
            grads = vmap(grad(scalar, every), in_dims=dims)(*mixed)
            for i in range(3):
                one = [x[i] if d == 0 else x for x, d in zip(mixed, dims, strict=True)]
                wanted = _named(names, grad(scalar, every)(*one))
                grads_by_name = _named(names, tuple(g[i] for g in grads))
                worst = max(worst, agree(grads_by_name, wanted, EXACT, f"vmap(grad), {mode}"))
    return worst_of(worst)


def per_sample(surface: Surface) -> str:
    """Gradients of the class per sample, by `vmap(grad(functional_call))`, are a loop's."""
    sample = surface.sample(5, batch=2, state=False)
    layer = sample.layer
    parameters = {k: v.detach() for k, v in layer.named_parameters()}
    if not parameters:
        return "no parameter"
    inputs = {k: torch.stack((v, 0.9 * v, 0.8 * v)) for k, v in sample.inputs.items()}

    def scalar(values: dict[str, Tensor], xs: dict[str, Tensor]) -> Tensor:
        return loss(functional_call(layer, values, (), xs))

    got = vmap(grad(scalar), in_dims=(None, 0))(parameters, inputs)
    worst = 0.0
    for i in range(3):
        want = grad(scalar)(parameters, {k: v[i] for k, v in inputs.items()})
        worst = max(worst, agree({k: v[i] for k, v in got.items()}, want, EXACT, f"sample {i}"))
    return worst_of(worst)


# --- shared ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Leaves:
    """Every tensor of the functional form as a real leaf.

    Attributes:
        surface: the module.
        names: of the tensors.
        tensors: the leaves; a complex tensor's has its parts along a last axis.
        complex: names of the complex ones.
    """

    surface: Surface
    names: tuple[str, ...]
    tensors: list[Tensor]
    complex: frozenset[str]

    def values(self, leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns what leaves stand for."""
        return {n: torch.view_as_complex(x) if n in self.complex else x for n, x in leaves.items()}

    def run(self, mode: str) -> Callable[..., Any]:
        """Returns the functional form of positional leaves, in one mode.

        A state over a running maximum m is S e^(-m), and m is a constant to gradients, which the
        output does not depend on. So of such a mixer the output alone is returned, of two segments:
        what is derived of the states is in that of the second.
        """
        surface = self.surface

        def run(*leaves: Tensor) -> tuple[Tensor, ...]:
            values = self.values(dict(zip(self.names, leaves, strict=True)))
            if not surface.maxima:
                return surface.functional(**values, mode=mode, chunk=_CHUNK)
            outputs = []
            length = len(values[next(iter(surface.inputs))][0])
            for part in (slice(length // 2), slice(length // 2, length)):
                cut = {n: values[n][:, part] for n in surface.inputs}
                y, *states = surface.functional(**(values | cut), mode=mode, chunk=_CHUNK)
                outputs.append(y)
                values |= dict(zip(surface.states, states, strict=True))
            return tuple(outputs)

        return run


def _leaves(surface: Surface, length: int, batch: int = 2, state: bool = True) -> _Leaves:
    values = surface.values(surface.sample(length, batch, state=state))
    tensors = []
    for x in values.values():
        real = torch.view_as_real(x.detach()) if x.is_complex() else x.detach()
        tensors.append(real.clone().requires_grad_())
    complex_ones = frozenset(n for n, x in values.items() if x.is_complex())
    return _Leaves(surface, tuple(values), tensors, complex_ones)


def _depends(leaves: _Leaves) -> bool:
    """Whether any result depends on any tensor."""
    return any(x.requires_grad for x in leaves.run(leaves.surface.modes[0])(*leaves.tensors))


def _scalar(run: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Tensor]:
    return lambda *xs: loss(*run(*xs))


def _named(names: tuple[str, ...], tensors: tuple[Tensor, ...]) -> dict[str, Tensor]:
    return {n: x.detach() for n, x in zip(names, tensors, strict=True)}


def _blocks(names: list[str], blocks: Any) -> dict[str, Tensor]:  # noqa: ANN401 - nested tuples
    return {
        f"{a}, {b}": blocks[i][j].detach() for i, a in enumerate(names) for j, b in enumerate(names)
    }
