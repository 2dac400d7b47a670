"""One of the processes of `test_tensor_parallel`: they share out the heads of layers.

Run as `python tensor_process.py STORE RANK COUNT CASES`; the cases are JSON: path of a module with
a layer, arguments of the layer, and its dtype. What differs ends the process with 1.
"""

from __future__ import annotations

import copy
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import parallelize_module

import dsfc

BOUND = {torch.float64: 1e-11, torch.float32: 1e-6}
"""Largest error, as a share of the largest entry: rounding of sums in another order."""
LENGTH = 7

FAILED: list[str] = []
"""Differences so far. None is raised: the others wait for this process."""


def close(got: Tensor, want: Tensor, what: str) -> None:
    """Compares what processes give between them with what one gives."""
    got = got.full_tensor() if isinstance(got, DTensor) else got
    error = float((got - want).abs().max() / want.abs().max().clamp(min=1e-30))
    if got.shape != want.shape or not error <= BOUND[want.dtype]:
        FAILED.append(f"{what}: {error}, {got.shape} for {want.shape}")


def inputs(layer: nn.Module, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """An input that takes gradients, and a mask that leaves tokens out."""
    u = torch.randn(2, LENGTH, layer.d, dtype=dtype, requires_grad=True)
    mask = torch.ones(2, LENGTH, dtype=torch.bool)
    mask[0, 3] = mask[1, -1] = False
    return u, mask


def calls(layer: nn.Module, u: Tensor, mask: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yields what every way to call the layer gives, by name."""
    for mode in ("auto", "recurrent"):
        yield mode, layer(u, mode=mode)
    yield "masked", layer(u, mask=mask)
    begun, state = layer(u[:, :3], return_state=True)
    token, state = layer.step(u[:, 3], state)
    rest, _ = layer.step_k(u[:, 4:], state)
    yield "parts", torch.cat((begun, token.unsqueeze(1), rest), 1)


def same_layer(make: Callable[[], nn.Module], dtype: torch.dtype, mesh: DeviceMesh) -> None:
    """Outputs, gradients and two steps of AdamW are those of the layer of one process."""
    torch.manual_seed(0)
    whole = make()
    for p in whole.parameters():
        nn.init.normal_(p, std=0.3)
    shared = copy.deepcopy(whole)
    if mesh.get_rank() > 0:
        for p in shared.parameters():  # the plan gives every process those of the first
            nn.init.zeros_(p)
    shared = parallelize_module(shared, mesh, shared.tensor_parallel_plan())
    shared_out(shared, whole, mesh.size())
    u, mask = inputs(whole, dtype)
    v = u.detach().clone().requires_grad_()
    for (name, want), (_, got) in zip(calls(whole, u, mask), calls(shared, v, mask), strict=True):
        close(got, want, name)
        weights = torch.randn_like(want)
        for layer, y in ((whole, want), (shared, got)):
            layer.zero_grad()
            (y * weights).sum().backward()
        close(v.grad, u.grad, f"{name}, gradient of u")
        u.grad = v.grad = None
        for (at, p), (_, q) in zip(
            whole.named_parameters(), shared.named_parameters(), strict=True
        ):
            close(q.grad, p.grad, f"{name}, gradient of {at}")
    optimizers = [torch.optim.AdamW(layer.parameters(), lr=0.01) for layer in (whole, shared)]
    for _ in range(2):
        for layer, x, optimizer in zip((whole, shared), (u, v), optimizers, strict=True):
            optimizer.zero_grad()
            layer(x).square().sum().backward()
            nn.utils.clip_grad_norm_(layer.parameters(), 0.1)
            optimizer.step()
    # A step of AdamW divides by the gradient, so that rounding of a small one counts.
    close(shared(v), whole(u), "after two steps") if dtype == torch.float64 else None


def shared_out(shared: nn.Module, whole: nn.Module, count: int) -> None:
    """Parameters along heads are cut along them; all others are whole tensors of all processes."""
    for name, p in shared.named_parameters():
        assert isinstance(p, DTensor), name
        axis = whole.head_axes.get(name)
        if axis is not None:
            assert p.placements == (Shard(axis),), (name, p.placements)
            assert p.to_local().shape[axis] * count == whole.get_parameter(name).shape[axis]
        else:
            assert p.placements == (Replicate(),), (name, p.placements)
    sizes = {name: x.numel() for name, x in whole.named_parameters()}
    assert sum(sizes.get(name, 0) for name in whole.head_axes) > sum(sizes.values()) / 2


def uneven_heads_change_nothing(make: Callable[[], nn.Module], mesh: DeviceMesh) -> None:
    """A number of heads that processes do not divide is refused before anything is cut."""
    layer = make()
    try:
        parallelize_module(layer, mesh, layer.tensor_parallel_plan())
    except ValueError as e:
        assert f"do not go evenly to {mesh.size()} processes" in str(e), str(e)
    else:
        raise AssertionError("uneven heads are taken")
    assert not any(isinstance(p, DTensor) for p in layer.parameters())


def main(store: str, rank: str, count: str, cases: str) -> None:
    """Runs the cases, one after another."""
    torch.set_num_threads(1)
    ranks = {"rank": int(rank), "world_size": int(count)}
    distributed.init_process_group("gloo", f"file://{store}", **ranks)
    mesh = init_device_mesh("cpu", (int(count),))
    for path, given, dtype in json.loads(cases):
        module: Any = dsfc.import_module(path)
        (cls,) = (getattr(module, n) for n in module.__all__ if n.endswith("Layer"))
        kind = getattr(torch, dtype)
        arguments = inspect.signature(cls).parameters.values()
        given = {**{a.name: 3 for a in arguments if a.default is a.empty}, **given}

        def make(cls: Any = cls, given: dict[str, Any] = given, kind: Any = kind) -> nn.Module:
            return cls(**given, dtype=kind)

        if given.get("h", 2) % int(count):
            uneven_heads_change_nothing(make, mesh)
        else:
            same_layer(make, kind, mesh)
        FAILED[:] = [x if x.startswith("/") else f"{path}: {x}" for x in FAILED]
    distributed.destroy_process_group()
    sys.exit("\n".join(FAILED) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
