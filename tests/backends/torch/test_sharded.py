"""FSDP2's mixed precision leaves `float32_parameters` in float32, as the guide to training says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "how_to" / "train.md"

PROGRAM = """
import importlib.util, sys, torch
from torch import distributed

spec = importlib.util.spec_from_file_location("emitted", sys.argv[1])
module = sys.modules["emitted"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
rank, count = int(sys.argv[3]), 2
torch.set_num_threads(1)
distributed.init_process_group("gloo", f"file://{{sys.argv[2]}}", rank=rank, world_size=count)
distributed.device_mesh.init_device_mesh("cpu", (count,))
torch.manual_seed(0)
mixer = module.Lru(d=4, n=6)
u = torch.randn(count, 2, 9, 4)
alone = [module.Lru(d=4, n=6) for _ in range(count)]
for layer, x in zip(alone, u):
    layer.load_state_dict(mixer.state_dict())
    layer.bfloat16()(x.bfloat16()).float().square().sum().backward()

{guide}

dtypes = {{}}
mixer.register_forward_pre_hook(
    lambda m, _: dtypes.update({{n: p.dtype for n, p in m.named_parameters()}})
)
y = mixer(u[rank])
assert torch.equal(y, alone[rank](u[rank].bfloat16()))
y.float().square().sum().backward()
for name, p in mixer.named_parameters():
    one_of_kept = name in mixer.float32_parameters
    assert dtypes[name] == (torch.float32 if one_of_kept else torch.bfloat16), name
    got = p.grad if one_of_kept else p.grad.full_tensor()
    want = sum(layer.get_parameter(name).grad.float() for layer in alone) / count
    torch.testing.assert_close(got, want, msg=lambda text: f"{{name}}: {{text}}")
distributed.destroy_process_group()
"""


@pytest.mark.ci
def test_two_processes_keep_them_and_agree_on_their_gradients(build, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (guide,) = (block for block in blocks if "fully_shard" in block)
    program = PROGRAM.format(guide=guide)
    module, store = build("lru", None).module.__file__, tmp_path / "store"
    started = [
        subprocess.Popen(
            [sys.executable, "-I", "-W", "ignore", "-c", program, module, store, str(rank)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(errors)
