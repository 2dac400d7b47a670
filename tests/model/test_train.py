"""Models are trained, cast, kept and loaded as transformers does it with its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from models import made
from runs import prompts, the_loss_falls

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture
def tokens() -> Any:
    return prompts(4, 12)


def test_the_loss_falls_in_bfloat16_with_accumulated_gradients(path: Path, tokens: Any) -> None:
    the_loss_falls(path, tokens)


def test_checkpointed_gradients_are_the_plain_ones(path: Path, tokens: Any) -> None:
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    model, gradients, calls = made(path).train(), [], []
    model.model.layers[0].mixer.register_forward_pre_hook(lambda *_: calls.append(0))
    for checkpointed in (False, True):
        if checkpointed:
            model.gradient_checkpointing_enable()
        model.zero_grad()
        out = model(tokens, attention_mask=mask, labels=tokens, use_cache=checkpointed)
        assert not (checkpointed and out.past_key_values)
        out.loss.backward()
        gradients.append({n: x.grad.clone() for n, x in model.named_parameters()})
    assert len(calls) == 1 + 2  # checkpointed once forwards, once again backwards
    torch.testing.assert_close(*gradients)


@pytest.mark.share(2, ci=0)
def test_a_model_is_loaded_as_it_was_kept(path: Path, tokens: Any, tmp_path: Path) -> None:
    """In a process that cannot import dsfc."""
    model = made(path, tied=True)
    model.save_pretrained(tmp_path / "kept")
    with torch.no_grad():
        torch.save({"tokens": tokens, "logits": model(tokens).logits}, tmp_path / "wanted.pt")
    program = """
import sys
sys.modules["dsfc"] = None
import torch
from transformers import AutoModel, AutoModelForCausalLM
wanted = torch.load("wanted.pt")
model = AutoModelForCausalLM.from_pretrained("kept", trust_remote_code=True, dtype=torch.float64)
assert torch.equal(model.eval()(wanted["tokens"]).logits, wanted["logits"])
assert model.lm_head.weight is model.model.embed_tokens.weight
inner = AutoModel.from_pretrained("kept", trust_remote_code=True, dtype=torch.float64).eval()
hidden = inner(wanted["tokens"]).last_hidden_state
torch.testing.assert_close(model.lm_head(hidden), wanted["logits"])
"""
    environment = {"HF_HOME": str(tmp_path), "PATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_in_bfloat16_some_parameters_stay_in_float32(
    path: Path, tokens: Any, tmp_path: Path
) -> None:
    """Those that a layer names, loaded and cast alike."""
    from transformers import AutoModelForCausalLM

    model = made(path).float()
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(
        tmp_path, trust_remote_code=True, dtype=torch.bfloat16
    )
    wide = {n for n, x in loaded.state_dict().items() if x.dtype == torch.float32}
    assert wide == {
        f"model.layers.{number}.mixer.{name}"
        for number, block in enumerate(model.model.layers)
        for name in block.mixer.float32_parameters
    }
    cast = model.bfloat16()
    assert {n: x.dtype for n, x in cast.state_dict().items()} == {
        n: x.dtype for n, x in loaded.state_dict().items()
    }
    torch.testing.assert_close(loaded.state_dict(), cast.state_dict(), rtol=0, atol=0)
    assert loaded.generate(
        tokens, max_new_tokens=3, do_sample=False, eos_token_id=None, pad_token_id=0
    ).shape == (4, 15)


def test_missing_weights_start_as_in_a_new_model_and_others_stay(
    path: Path, tmp_path: Path
) -> None:
    """What is missing is drawn as its layer draws it, though half of the layer is there."""
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM

    model = made(path).float()
    with torch.no_grad():
        for x in model.parameters():
            x.fill_(0.25)
    model.save_pretrained(tmp_path)
    names = [n for n, _ in model.named_parameters() if n.startswith("model.layers.1.mixer.")]
    missing = names[::2]
    kept = load_file(tmp_path / "model.safetensors")
    left = {n: x for n, x in kept.items() if n not in missing}
    save_file(left, tmp_path / "model.safetensors", metadata={"format": "pt"})
    torch.manual_seed(1)
    loaded = dict(
        AutoModelForCausalLM.from_pretrained(tmp_path, trust_remote_code=True).named_parameters()
    )
    assert missing and all(bool((loaded[n] == 0.25).all()) for n in left if n in loaded)
    layer = model.model.layers[1].mixer
    layer.reset_parameters()
    for name in missing:
        fresh = layer.get_parameter(name.removeprefix("model.layers.1.mixer.")).detach()
        found = loaded[name].detach()
        assert not bool((found == 0.25).all())
        if fresh.std(correction=0) == 0:
            torch.testing.assert_close(found, fresh)
        else:  # drawn: of the same size, as far as so few numbers say
            assert 0.3 < found.square().mean().sqrt() / fresh.square().mean().sqrt() < 3


def test_parameters_without_weight_decay_are_named(model: Any) -> None:
    named = dict(model.named_parameters())
    plain = model.no_weight_decay
    assert plain <= set(named)
    assert {n for n in named if n.endswith("norm.weight")} <= plain
    for number, block in enumerate(model.model.layers):
        own = {f"model.layers.{number}.mixer.{name}" for name in block.mixer.no_weight_decay}
        assert own <= plain
    assert not {n for n in plain if "embed" in n or ".mlp." in n}


def test_blocks_follow_the_pattern(model: Any) -> None:
    order = model.config.pattern
    for number, block in enumerate(model.model.layers):
        wanted = order[number % len(order)].replace("_", "") + "layer"
        assert type(block.mixer).__name__.lower() == wanted


@pytest.mark.full
def test_the_program_of_the_folder_trains(
    modules_of_models: None, root: Path, tmp_path: Path
) -> None:
    from models import written

    folder = written(tmp_path / "model", ["gla", "softmax"])
    environment = {"HF_HOME": str(tmp_path), "PATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, folder / "train.py", root / "LICENSE", "11"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses = [float(line.split()[-1]) for line in done.stdout.splitlines()[:2]]
    assert losses[1] < losses[0] and (folder / "trained" / "model.safetensors").is_file()
