"""Programs of several processes: a sequence that they share, and parameters that they share out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROCESS = Path(__file__).with_name("context_process.py")
TRAINING = Path(__file__).with_name("context_training.py")


def run(program: Path, cases: object, folder: Path) -> None:
    """Runs a program in four processes."""
    command = [sys.executable, "-W", "ignore", str(program), str(folder / "store")]
    started = [
        subprocess.Popen(
            [*command, str(rank), json.dumps(cases)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(4)
    ]
    said = [process.communicate() for process in started]
    assert [p.returncode for p in started] == [0] * 4, "\n".join(
        f"{out[:2000]}\n{error[-1500:]}" for out, error in said
    )


GUIDE = Path(__file__).parents[3] / "docs" / "how_to" / "train.md"

PROGRAM = """
import importlib.util, json, sys, torch
from torch import distributed

spec = importlib.util.spec_from_file_location("emitted", sys.argv[1])
module = sys.modules["emitted"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
rank, count, make = int(sys.argv[3]), 2, json.loads(sys.argv[4])
cls = getattr(module, make.pop("class"))
torch.set_num_threads(1)
distributed.init_process_group("gloo", f"file://{{sys.argv[2]}}", rank=rank, world_size=count)
distributed.device_mesh.init_device_mesh("cpu", (count,))
torch.manual_seed(0)
mixer = cls(**make)
u = torch.randn(count, 2, 9, make["d"])
alone = [cls(**make) for _ in range(count)]
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


def sharded(module: Path, name: str, arguments: Mapping[str, int], folder: Path) -> None:
    """Shards a class of a module over two processes as the guide to training says.

    Outputs are those of one process bit for bit, gradients the means of both; what
    `float32_parameters` names stays in float32.

    Args:
        module: an emitted module.
        name: of the class.
        arguments: of its constructor; its input is `[B, L, d]`.
        folder: where the processes meet.
    """
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (guide,) = (block for block in blocks if "fully_shard" in block)
    program, store = PROGRAM.format(guide=guide), folder / "store"
    make = json.dumps({"class": name, **arguments})
    started = [
        subprocess.Popen(
            [sys.executable, "-I", "-W", "ignore", "-c", program, module, store, str(rank), make],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(errors)
