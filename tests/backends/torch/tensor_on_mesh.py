"""One of four processes of `test_tensor_parallel`: heads on two, and on two FSDP2 or a sequence.

Run as `python tensor_on_mesh.py STORE RANK COUNT CASES`; the cases are JSON: the path of a module
with `GlaLayer` whose sequences processes may share too.
"""

from __future__ import annotations

import copy
import json
import sys

import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import parallelize_module

import dsfc


def main(store: str, rank: str, count: str, cases: str) -> None:
    """Compares outputs and gradients on a mesh of two by two with those of one process."""
    torch.set_num_threads(1)
    ranks = {"rank": int(rank), "world_size": int(count)}
    distributed.init_process_group("gloo", f"file://{store}", **ranks)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("other", "heads"))
    at, other = mesh.get_local_rank("other"), mesh.get_group("other")
    torch.manual_seed(0)
    whole = dsfc.import_module(json.loads(cases)[0]).GlaLayer(8, h=4, dtype=torch.float64)
    sharded, split = copy.deepcopy(whole), copy.deepcopy(whole)
    u = torch.randn(2, 6, 8, dtype=torch.float64)
    y = whole(u)
    y.square().mean().backward()

    parallelize_module(sharded, mesh["heads"], sharded.tensor_parallel_plan())
    fully_shard(sharded, mesh=mesh["other"])
    row = sharded(u[at : at + 1])
    torch.testing.assert_close(row, y[at : at + 1])
    row.square().mean().backward()
    for name, p in sharded.named_parameters():
        torch.testing.assert_close(p.grad.full_tensor(), whole.get_parameter(name).grad)

    parallelize_module(split, mesh["heads"], split.tensor_parallel_plan())
    segment = split(u.chunk(2, 1)[at], group=other)
    torch.testing.assert_close(segment, y.chunk(2, 1)[at])
    (segment.square().sum() / y.numel()).backward()
    for name, p in split.named_parameters():
        total = p.grad.full_tensor()
        distributed.all_reduce(total, group=other)
        torch.testing.assert_close(total, whole.get_parameter(name).grad)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
