"""transformers' own `Trainer` trains a model: autocast, accumulation, checkpointed gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from models import made
from runs import prompts

pytest.importorskip("accelerate")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def losses(path: Path, folder: Path, checkpointed: bool) -> list[float]:
    """Losses of ten steps on four rows, of two batches each, in bfloat16."""
    from transformers import Trainer, TrainingArguments

    model = made(path).float()
    calls: list[Any] = []
    model.model.layers[0].mixer.register_forward_pre_hook(lambda *_: calls.append(0))
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        bf16=True,
        max_steps=10,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        gradient_checkpointing=checkpointed,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    rows = [{"input_ids": row, "labels": row} for row in prompts(4, 12)]
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
    trainer.train()
    assert len(calls) == 20 * (1 + checkpointed)  # once more backwards where checkpointed
    assert all(x.dtype == torch.float32 for x in model.parameters())
    return [step["loss"] for step in trainer.state.log_history if "loss" in step]


def test_the_loss_falls_and_checkpoints_change_nothing(path: Path, tmp_path: Path) -> None:
    """By a fifth in ten steps; the same numbers, since the same operations run again."""
    plain, checkpointed = (losses(path, tmp_path, how) for how in (False, True))
    assert len(plain) == 10 and plain[-1] < 0.8 * plain[0]
    assert checkpointed == pytest.approx(plain, rel=1e-6)
