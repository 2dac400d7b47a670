"""One of the processes of `test_context` that train: context parallelism beside DDP and FSDP2.

Run as `python context_training.py STORE RANK CASES`; the cases are JSON: paths of two modules. One
step of a model of both is compared with that of one process.
"""

from __future__ import annotations

import copy
import json
import sys
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import dsfc
from dsfc.validate.surface import surface

COUNT, BATCH, LENGTH, WIDTH = 4, 2, 12, 8


class Model(nn.Module):
    """Two mixers, each beside its input."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        classes = [surface(dsfc.import_module(path)).cls for path in paths]
        self.mixers = nn.ModuleList([cls(d=WIDTH, h=2, dtype=torch.float64) for cls in classes])
        self.out = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)

    def forward(self, u: Tensor, group: Any = None) -> Tensor:
        """Mixes a segment, shared with the others of the group."""
        for mixer in self.mixers:
            u = u + mixer(u, group=group).flatten(2)
        y: Tensor = self.out(u)
        return y


def step(model: nn.Module, u: Tensor, target: Tensor, group: Any = None) -> Tensor:
    """Takes one step, and returns the loss of the tokens here, a mean."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loss = (model(u, group=group) - target).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def same(model: nn.Module, one: nn.Module, loss: Tensor, whole: Tensor, group: Any) -> None:
    """Raises where parameters, or the mean of losses, are not those of one process."""
    distributed.all_reduce(loss, group=group)
    torch.testing.assert_close(loss / distributed.get_world_size(group), whole)
    for p, (name, q) in zip(model.parameters(), one.named_parameters(), strict=True):
        full = p.full_tensor() if isinstance(p, DTensor) else p
        error = (full.detach() - q.detach()).abs().max()
        assert error <= 1e-12, f"{name}: off by {error:.1e}"


def main() -> None:
    store, rank, paths = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    patience = timedelta(seconds=120)
    distributed.init_process_group(
        "gloo", f"file://{store}", rank=rank, world_size=COUNT, timeout=patience
    )
    torch.manual_seed(0)
    start = Model(paths)
    u, target = torch.randn(2, BATCH, LENGTH, WIDTH, dtype=torch.float64)
    one = copy.deepcopy(start)
    whole = step(one, u, target)
    moved = zip(one.parameters(), start.parameters(), strict=True)
    assert any((p - q).abs().max() > 1e-3 for p, q in moved)

    # Two processes share every sequence; DDP averages the gradients of their segments.
    pair = distributed.new_group([0, 1])
    if rank < 2:
        model = DistributedDataParallel(copy.deepcopy(start), process_group=pair)
        halves = (x.chunk(2, 1)[rank] for x in (u, target))
        same(model, one, step(model, *halves, pair), whole, pair)

    # Two by two: rows of the batch, and halves of each sequence; FSDP2 shards over all four.
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "context"))
    every = init_device_mesh("cpu", (COUNT,))
    model = copy.deepcopy(start)
    for mixer in model.mixers:
        fully_shard(mixer, mesh=every)
    fully_shard(model, mesh=every)
    row, half = mesh.get_local_rank("rows"), mesh.get_local_rank("context")
    parts = (x.chunk(2, 0)[row].chunk(2, 1)[half] for x in (u, target))
    loss = step(model, *parts, mesh.get_group("context"))
    same(model, one, loss, whole, distributed.group.WORLD)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
