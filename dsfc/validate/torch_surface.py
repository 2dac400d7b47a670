"""Promises about PyTorch's own machinery: operators, derivatives, transforms, devices, imports.

One function per promise. What traces and compiles stands in `dsfc.validate.compilers`.
"""

from __future__ import annotations

import copy
import dataclasses
import gc
import importlib.util
import io
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad, jacrev, jvp, vmap
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from dsfc.validate.cases import strided
from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, same
from dsfc.validate.surface import Call, Surface, loss

_CHUNK = 2
_TIGHT = 1e-10


# --- operators ------------------------------------------------------------------------------------


def opcheck(surface: Surface) -> str:
    """PyTorch's four checks of an operator pass for each one, mode, dtype and memory layout."""
    count = 0
    for dtype in (torch.float64, torch.float32):
        sample = surface.sample(5, dtype=dtype)
        for mode in surface.modes:
            for call in _each(surface.calls(sample, mode=mode, chunk=_CHUNK)):
                for layout in (torch.Tensor.contiguous, strided):
                    args = [
                        layout(a.detach().clone()).requires_grad_() if isinstance(a, Tensor) else a
                        for a in call.args
                    ]
                    torch.library.opcheck(call.op, tuple(args))
                    count += 1
    return f"{count} times four checks"


def _each(calls: tuple[Call, ...]) -> list[Call]:
    """The first call of each operator."""
    found: dict[str, Call] = {}
    for call in calls:
        found.setdefault(call.op.name(), call)
    return list(found.values())


# --- derivatives ----------------------------------------------------------------------------------


def gradcheck(surface: Surface) -> str:
    """First derivatives agree with differences, singly and batched."""
    names, tensors = _tensors(surface, 5)
    for mode in surface.modes:
        run = surface.fixed(names, mode, _CHUNK)
        torch.autograd.gradcheck(run, tensors, check_batched_grad=True)
    return f"in {len(tensors)} tensors"


def gradgradcheck(surface: Surface) -> str:
    """Second derivatives agree with differences."""
    names, tensors = _tensors(surface, 3, batch=1)
    for mode in surface.modes:
        run = surface.fixed(names, mode, _CHUNK)
        torch.autograd.gradgradcheck(run, tensors, fast_mode=True)
    return f"in {len(tensors)} tensors"


def func_grad(surface: Surface) -> str:
    """`torch.func.grad` and `jacrev` give what autograd gives."""
    names, tensors = _tensors(surface, 5)
    every = tuple(range(len(names)))
    worst = 0.0
    for mode in surface.modes:
        scalar = _scalar(surface.fixed(names, mode, _CHUNK))
        grads = torch.autograd.grad(scalar(*tensors), tensors, materialize_grads=True)
        want = _named(names, grads)
        plain = tuple(x.detach() for x in tensors)
        for transform in (grad, jacrev):
            got = _named(names, transform(scalar, every)(*plain))
            worst = max(worst, agree(got, want, EXACT, f"{transform.__name__}, {mode}"))
    return f"worst {worst:.1e}"


def hessian(surface: Surface) -> str:
    """`jacrev(jacrev(f))` is the Hessian of the definition, in inputs and parameters."""
    names, tensors = _tensors(surface, 3, batch=1, state=False)
    kept = [n for n in names if n not in surface.states]
    plain = {n: x.detach() for n, x in zip(names, tensors, strict=True)}
    states = {n: plain[n] for n in surface.states}
    some = tuple(plain[n] for n in kept)
    every = tuple(range(len(kept)))

    def scalar_of(mode: str) -> Callable[..., Tensor]:
        def run(*xs: Tensor) -> Tensor:
            given = dict(zip(kept, xs, strict=True))
            return loss(surface.functional(**given, **states, mode=mode, chunk=_CHUNK)[0])

        return run

    def definition(*xs: Tensor) -> Tensor:
        return loss(surface.reference(dict(zip(kept, xs, strict=True))))

    want = _blocks(kept, torch.autograd.functional.hessian(definition, some))
    worst = 0.0
    for mode in surface.modes:
        got = _blocks(kept, jacrev(jacrev(scalar_of(mode), every), every)(*some))
        worst = max(worst, agree(got, want, _TIGHT, mode))
    return f"{len(want)} blocks, worst {worst:.1e}"


def third_order(surface: Surface) -> str:
    """Third derivatives are those of the definition."""
    sample = surface.sample(2, batch=1, state=False)
    values = {k: v.detach() for k, v in surface.values(sample).items()}
    names = [n for n in surface.arguments if n not in surface.states]
    states = {n: values[n] for n in surface.states}

    def third(run: Callable[..., Tensor]) -> Tensor:
        xs = {n: values[n].clone().requires_grad_() for n in names}
        out = loss(run(xs))
        for _ in range(3):
            parts = torch.autograd.grad(
                out, list(xs.values()), create_graph=True, materialize_grads=True
            )
            out = torch.stack([(p * p).sum() for p in parts]).sum()
        return out.detach()

    want = {"third": third(lambda xs: surface.reference(xs))}
    worst = 0.0
    for mode in surface.modes:
        run = lambda xs, m=mode: surface.functional(**xs, **states, mode=m, chunk=_CHUNK)[0]  # noqa: E731
        worst = max(worst, agree({"third": third(run)}, want, _TIGHT, mode))
    return f"worst {worst:.1e}"


def forward_mode(surface: Surface) -> str:
    """`torch.func.jvp` is refused in one line that names `jacrev(jacrev(f))`."""
    names, tensors = _tensors(surface, 3)
    if not surface.calls(surface.sample(3)):
        return "no operator: PyTorch's own"
    plain = tuple(x.detach() for x in tensors)
    try:
        jvp(surface.fixed(names, "auto", _CHUNK), plain, plain)
    except NotImplementedError as e:
        if "jacrev(jacrev" not in str(e) or "\n" in str(e):
            raise BrokenPromiseError(f"jvp is refused without a way out: {e}") from e
        return ""
    raise BrokenPromiseError("jvp is not refused")


# --- transforms -----------------------------------------------------------------------------------


def vectorized(surface: Surface) -> str:
    """`vmap` over every tensor is a loop; so is `vmap(grad)`, with some tensors shared."""
    names, tensors = _tensors(surface, 5)
    every = tuple(range(len(names)))
    plain = [x.detach() for x in tensors]
    worst = 0.0
    for mode in surface.modes:
        scalar = _scalar(surface.fixed(names, mode, _CHUNK))
        stacks = [torch.stack((x, 0.9 * x, 0.8 * x)) for x in plain]
        want = torch.stack([scalar(*(s[i] for s in stacks)) for i in range(3)])
        got = vmap(scalar)(*stacks)
        worst = max(worst, agree({"vmap": got}, {"vmap": want}, EXACT, mode))
        for offset in (0, 1):
            dims = tuple(None if (i + offset) % 2 else 0 for i in every)
            mixed = [s if d == 0 else x for s, x, d in zip(stacks, plain, dims, strict=True)]
            grads = vmap(grad(scalar, every), in_dims=dims)(*mixed)
            for i in range(3):
                one = [x[i] if d == 0 else x for x, d in zip(mixed, dims, strict=True)]
                wanted = _named(names, grad(scalar, every)(*one))
                given = _named(names, tuple(g[i] for g in grads))
                worst = max(worst, agree(given, wanted, EXACT, f"vmap(grad), {mode}"))
    return f"worst {worst:.1e}"


def per_sample(surface: Surface) -> str:
    """Gradients of the class per sample, by `vmap(grad(functional_call))`, are a loop's."""
    sample = surface.sample(5, batch=2, state=False)
    layer = sample.layer
    parameters = {k: v.detach() for k, v in layer.named_parameters()}
    if not parameters:
        return "no parameter"
    inputs = {k: torch.stack((v, 0.9 * v, 0.8 * v)) for k, v in sample.inputs.items()}

    def scalar(given: dict[str, Tensor], xs: dict[str, Tensor]) -> Tensor:
        return loss(functional_call(layer, given, (), xs))

    got = vmap(grad(scalar), in_dims=(None, 0))(parameters, inputs)
    worst = 0.0
    for i in range(3):
        want = grad(scalar)(parameters, {k: v[i] for k, v in inputs.items()})
        worst = max(worst, agree({k: v[i] for k, v in got.items()}, want, EXACT, f"sample {i}"))
    return f"worst {worst:.1e}"


def checkpointing(surface: Surface) -> str:
    """A policy of selective checkpointing sees the operators, and the gradient stays the same."""
    sample = surface.sample(5, state=False)
    operators = {call.op for call in surface.calls(sample)}
    seen: set[Any] = set()

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:  # noqa: ANN401
        seen.add(op)
        keep = op in operators
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    def gradients(run: Callable[[dict[str, Tensor]], Tensor]) -> dict[str, Tensor]:
        leaves = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
        return _named(
            tuple(leaves), torch.autograd.grad(loss(run(leaves)), list(leaves.values()))
        )

    want = gradients(lambda xs: sample.layer(**xs))
    got = gradients(
        lambda xs: checkpoint(
            lambda *x: sample.layer(**dict(zip(xs, x, strict=True))),
            *xs.values(),
            use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        )
    )
    forward = {op for op in operators if "forward" in op.name()}
    if not forward <= seen:
        raise BrokenPromiseError(f"the policy does not see {', '.join(op.name() for op in forward)}")
    agree(got, want, EXACT, "checkpointed")
    return f"sees {len(operators & seen)} of {len(operators)} operators"


# --- devices and copies ---------------------------------------------------------------------------


def meta(surface: Surface) -> str:
    """On the meta device shapes, dtypes and gradients are those of a real run."""
    for dtype in (torch.float32, torch.bfloat16):
        real = surface.sample(9, dtype=dtype, state=False)
        y, after = real.layer(**real.inputs, return_state=True)
        layer = surface.layer(dtype, device="meta")
        inputs = {k: v.to("meta").requires_grad_() for k, v in real.inputs.items()}
        ghost, ghosts = layer(**inputs, return_state=True)
        pairs = {"y": (ghost, y)}
        for name, x in surface.tensors(after).items():
            pairs[f"state {name}"] = (getattr(ghosts, name), x)
        for name, (shadow, x) in pairs.items():
            if (shadow.shape, shadow.dtype, shadow.stride()) != (x.shape, x.dtype, x.stride()):
                raise BrokenPromiseError(f"{name} has another shape, dtype or stride on meta")
            if shadow.device.type != "meta":
                raise BrokenPromiseError(f"{name} leaves the meta device")
        ghost.sum().backward()
        for name, g in inputs.items():
            if g.grad is None or g.grad.shape != g.shape:
                raise BrokenPromiseError(f"{name} gets no gradient on meta")
    return ""


def copies(surface: Surface) -> str:
    """`state_dict`, `deepcopy`, and a saved and loaded state give the same bits."""
    sample = surface.sample(5)
    want = sample.layer(**sample.inputs, state=sample.state)
    fresh = surface.layer(seed=5)
    fresh.load_state_dict(sample.layer.state_dict())
    same(fresh(**sample.inputs, state=sample.state), want, "from a state_dict")
    copied = copy.deepcopy(sample.layer)
    same(copied(**sample.inputs, state=copy.deepcopy(sample.state)), want, "deep copy")
    buffer = io.BytesIO()
    torch.save(sample.state, buffer)
    buffer.seek(0)
    state = torch.load(buffer, weights_only=True)
    same(sample.layer(**sample.inputs, state=state), want, "from a saved state")
    return ""


def imports(surface: Surface) -> str:
    """Reload, a second path and another version live side by side; foreign states are refused."""
    sample = surface.sample(5)
    want = sample.layer(**sample.inputs, state=sample.state).detach()
    text = Path(str(surface.module.__file__)).read_text(encoding="utf-8")

    def answer(module: ModuleType) -> Tensor:
        other = dataclasses.replace(surface, module=module)
        again: Tensor = other.layer()(**sample.inputs, state=sample.state)
        return again.detach()

    with tempfile.TemporaryDirectory() as folder:
        first = _imported(Path(folder) / "one.py", text)
        same(answer(first), want, "a second path")
        spec = first.__spec__
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(first)  # what importlib.reload does
        same(answer(first), want, "reloaded")
        versioned = text.replace(surface.namespace, f"{surface.namespace}_other")
        versioned = versioned.replace(surface.module.SPEC, "f" * len(surface.module.SPEC))
        second = _imported(Path(folder) / "two.py", versioned)
        other = dataclasses.replace(surface, module=second)
        same(other.layer()(**sample.inputs).detach(), _without_state(surface), "another version")
        _refuses(lambda: other.layer()(**sample.inputs, state=sample.state), "a foreign state")
        _refuses(lambda: sample.layer(**sample.inputs, state=object()), "no state at all")
        for module in (first, second):
            del sys.modules[module.__name__]
        del first, second, other
    gc.collect()
    same(sample.layer(**sample.inputs, state=sample.state).detach(), want, "the first one")
    surface.calls(sample)
    return ""


def _without_state(surface: Surface) -> Tensor:
    sample = surface.sample(5)
    y: Tensor = sample.layer(**sample.inputs)
    return y.detach()


def _refuses(run: Callable[[], object], what: str) -> None:
    try:
        run()
    except ValueError as e:
        if "state" in str(e) and "\n" not in str(e):
            return
        raise BrokenPromiseError(f"{what} is refused with: {e}") from e
    raise BrokenPromiseError(f"{what} is taken")


def _imported(path: Path, text: str) -> ModuleType:
    path.write_text(text, encoding="utf-8")
    name = f"dsfc_validate_{path.stem}_{uuid.uuid4().hex[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def complaints(surface: Surface) -> str:
    """What does not fit is refused in one line that names it: shapes, dtypes, devices, modes."""
    sample = surface.sample(5, dtype=torch.float32)
    layer = sample.layer
    cases: list[tuple[str, dict[str, Any], type[Exception], str]] = [
        ("mode", {"mode": "none_such"}, ValueError, "mode must be"),
        ("chunk", {"chunk": 0}, ValueError, "chunk must be"),
    ]
    for name, x in sample.inputs.items():
        cases += [
            (f"{name} without time", {name: x[:, 0]}, ValueError, name),
            (f"{name} of another dtype", {name: x.double()}, TypeError, "cast"),
            (f"{name} of integers", {name: x.long()}, TypeError, "cast"),
            (f"{name} elsewhere", {name: x.to("meta")}, ValueError, name),
        ]
        if x.ndim > 2:
            cases.append((f"{name} too narrow", {name: x[..., :-1]}, ValueError, name))
    if any(x.ndim for x in surface.tensors(sample.state).values()):
        wrong = layer.initial_state(3)
        cases.append(("a state of another batch", {"state": wrong}, ValueError, "state"))
    for what, change, kind, word in cases:
        try:
            layer(**{**sample.inputs, "state": sample.state, **change})
        except kind as e:
            if word not in str(e) or "\n" in str(e):
                raise BrokenPromiseError(f"{what} is refused with: {e}") from e
        except Exception as e:
            raise BrokenPromiseError(f"{what}: {type(e).__name__}, not {kind.__name__}") from e
        else:
            raise BrokenPromiseError(f"{what} is taken")
    return f"{len(cases)} refused"


# --- shared ---------------------------------------------------------------------------------------


def _tensors(
    surface: Surface, length: int, batch: int = 2, state: bool = True
) -> tuple[tuple[str, ...], list[Tensor]]:
    """Every tensor of the functional form as a leaf, with its name."""
    values = surface.values(surface.sample(length, batch, state=state))
    return tuple(values), [x.detach().clone().requires_grad_() for x in values.values()]


def _scalar(run: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Tensor]:
    return lambda *xs: loss(*run(*xs))


def _named(names: tuple[str, ...], tensors: tuple[Tensor, ...]) -> dict[str, Tensor]:
    return {n: x.detach() for n, x in zip(names, tensors, strict=True)}


def _blocks(names: list[str], blocks: Any) -> dict[str, Tensor]:  # noqa: ANN401 - nested tuples
    return {
        f"{a}, {b}": blocks[i][j].detach()
        for i, a in enumerate(names)
        for j, b in enumerate(names)
    }
