"""Promises about PyTorch's own machinery: operators, checkpoints, devices, copies, imports.

One function per promise. Derivatives stand in `dsfc.validate.derivatives`, what traces and compiles
in `dsfc.validate.compilers`.
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
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from dsfc.validate.cases import strided
from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, same
from dsfc.validate.dispatch import Call
from dsfc.validate.surface import Sample, Surface, ends, gradients, loss, pull_back

_CHUNK = 2


# --- operators ------------------------------------------------------------------------------------


def opcheck(surface: Surface) -> str:
    """PyTorch's four checks of an operator pass for each one, mode, dtype and memory layout."""
    count = 0
    for dtype, modes in ((torch.float64, surface.modes), (torch.float32, surface.modes[:1])):
        sample = surface.sample(5, dtype=dtype)
        for mode in modes:
            for call in _each(surface.calls(sample, mode=mode, chunk=_CHUNK)):
                for layout in (torch.Tensor.contiguous, strided):
                    args = [
                        layout(a.detach().clone()).requires_grad_() if isinstance(a, Tensor) else a
                        for a in call.args
                    ]
                    torch.library.opcheck(call.op, tuple(args))
                    count += 1
    return f"all four pass for {count} calls"


def owned(surface: Surface) -> str:
    """Results of operators have memory of their own, no argument's and no other result's."""
    count = 0
    for length in (0, 1, 5):
        sample = surface.sample(length)
        for mode in surface.modes:
            for call in surface.calls(sample, mode=mode, chunk=_CHUNK):
                seen = {_storage(x) for x in call.args if isinstance(x, Tensor)}
                for index, out in enumerate(call.outs):
                    if _storage(out) in seen:
                        raise BrokenPromiseError(
                            f"{call.op.name()}, {mode}, L = {length}: result {index} shares memory"
                        )
                    seen.add(_storage(out))
                    count += 1
    return f"{count} results share no memory"


def _storage(x: Tensor) -> int:
    return int(x.untyped_storage()._cdata)


def _each(calls: tuple[Call, ...]) -> list[Call]:
    """The first call of each operator."""
    calls_by_name: dict[str, Call] = {}
    for call in calls:
        calls_by_name.setdefault(call.op.name(), call)
    return list(calls_by_name.values())


def checkpointing(surface: Surface) -> str:
    """A policy of selective checkpointing sees the operators, and the gradient stays the same."""
    sample = surface.sample(5, state=False)
    operators = {call.op for call in surface.calls(sample)}
    seen: set[Any] = set()

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:  # noqa: ANN401
        seen.add(op)
        keep = op in operators
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    def pulled(run: Callable[[dict[str, Tensor]], Tensor]) -> dict[str, Tensor]:
        leaves = {k: v.clone().requires_grad_() for k, v in sample.inputs.items()}
        grads = gradients(loss(run(leaves)), list(leaves.values()))
        return dict(zip(leaves, grads, strict=True))

    want = pulled(lambda xs: sample.layer(**xs))
    got = pulled(
        lambda xs: checkpoint(
            lambda *x: sample.layer(**dict(zip(xs, x, strict=True))),
            *xs.values(),
            use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        )
    )
    forward = {op for op in operators if "forward" in op.name()}
    if not forward <= seen:
        raise BrokenPromiseError(
            f"the policy does not see {', '.join(op.name() for op in forward)}"
        )
    agree(got, want, EXACT, "checkpointed")
    return f"the policy sees {len(operators & seen)} of {len(operators)} operators"


# --- devices and copies ---------------------------------------------------------------------------


def meta(surface: Surface) -> str:
    """On the meta device shapes, dtypes and gradients are those of a real run."""
    for dtype in (torch.float32, torch.bfloat16):
        real = surface.sample(9, dtype=dtype, state=False)
        leaves = {k: v.clone().requires_grad_() for k, v in real.inputs.items()}
        y, after = ends(real.layer(**leaves, **surface.carried))
        layer = surface.layer(dtype, device="meta")
        inputs = {k: v.to("meta").requires_grad_() for k, v in real.inputs.items()}
        ghost, ghosts = ends(layer(**inputs, **surface.carried))
        pairs = {"y": (ghost, y)}
        for name, x in surface.tensors(after).items():
            pairs[f"state {name}"] = (getattr(ghosts, name), x)
        for name, (shadow, x) in pairs.items():
            if (shadow.shape, shadow.dtype, shadow.stride()) != (x.shape, x.dtype, x.stride()):
                raise BrokenPromiseError(f"{name} has another shape, dtype or stride on meta")
            if shadow.device.type != "meta":
                raise BrokenPromiseError(f"{name} leaves the meta device")
        pull_back(ghost.sum())
        pull_back(y.sum())
        for name, g in inputs.items():
            if leaves[name].grad is None:
                continue  # the output does not depend on it
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

    with tempfile.TemporaryDirectory() as folder:
        _side_by_side(surface, Path(folder), text, want)
    gc.collect()
    same(sample.layer(**sample.inputs, state=sample.state).detach(), want, "the first one")
    surface.calls(sample)
    return ""


def _side_by_side(surface: Surface, folder: Path, text: str, want: Tensor) -> None:
    """Imports copies and another version from a folder, compares them, and lets them go."""
    sample = surface.sample(5)
    first = _imported(folder / "one.py", text)
    twin = dataclasses.replace(surface, module=first)
    same(_answer(twin, sample), want, "a second path")
    spec = first.__spec__
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(first)  # what importlib.reload does
    same(_answer(twin, sample), want, "reloaded")
    versioned = text.replace(surface.namespace, f"{surface.namespace}_other")
    versioned = versioned.replace(surface.module.SPEC, "f" * len(surface.module.SPEC))
    second = _imported(folder / "two.py", versioned)
    layer = dataclasses.replace(surface, module=second).layer()
    same(layer(**sample.inputs), sample.layer(**sample.inputs), "another version")
    foreign = sample.state if surface.causal else sample.layer.initial_state(2)
    _refuses(lambda: layer(**sample.inputs, state=foreign), "a foreign state")
    _refuses(lambda: sample.layer(**sample.inputs, state=object()), "no state at all")
    for module in (first, second):
        del sys.modules[module.__name__]


def _answer(surface: Surface, sample: Sample) -> Tensor:
    y: Tensor = surface.layer()(**sample.inputs, state=sample.state)
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
    bare = not any(True for _ in layer.parameters())
    alone = bare and len(sample.inputs) == 1
    for name, x in sample.inputs.items():
        # Without parameters the others are held to the first input: one of them is named.
        held_to = bare and name == next(iter(sample.inputs))
        cases += [
            (f"{name} without time", {name: x[:, 0]}, ValueError, name),
            (f"{name} of integers", {name: x.long()}, TypeError, "cast"),
        ]
        if not alone:  # what no other argument is held to is of no other dtype, and not elsewhere
            cases += [
                (f"{name} of another dtype", {name: x.double()}, TypeError, "cast"),
                (
                    f"{name} elsewhere",
                    {name: x.to("meta")},
                    ValueError,
                    "want meta" if held_to else name,
                ),
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
    return f"{len(cases)} wrong calls are refused"
