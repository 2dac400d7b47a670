"""Damaged attention is caught, by the checks that are for it and by those that are for all."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, deterministic_torch, run
from dsfc.validate.surface import surface

BY_NAME = {check.name: check for check in CHECKS}

FAULTS = {
    "tokens to come are seen": ("is_causal=True, ", "", ("definition", "causality", "fused")),
    "tokens to come are seen, behind kept ones": (
        "attn_mask=visible, ",
        "",
        ("modes", "segments", "fused"),
    ),
    "the scale is another": ("scale=scale)", "scale=2 * scale)", ("definition", "fused")),
    "pairs written out have another scale": (
        "scores = (scale *",
        "scores = (2 * scale *",
        ("definition", "modes", "fused"),
    ),
    "no kernel of PyTorch's runs": (
        'elif mode == "parallel":',
        'elif mode in ("parallel", "fused"):',
        ("fused",),
    ),
    "a state holds more than its tokens": (
        "        return x.to(like.dtype)\n",
        "        return torch.cat((x, x), 1)[:, : x.shape[1]]\n",
        ("streaming",),
    ),
    "a step reads all tokens twice": (
        '    if mode == "recurrent" and length',
        '    k = k.clone() if k.shape[2] % 2 else k\n    if mode == "recurrent" and length',
        ("streaming",),
    ),
    "what is kept by none is seen": ("(seen > 0.5)", "(seen > -1)", ("packs",)),
    "shorter rows have their gap behind": (
        "(longest - t.shape[1], 0)",
        "(0, longest - t.shape[1])",
        ("packs",),
    ),
    "tokens that do not count are kept": (
        "left_out = x.shape[1] - like.shape[1] - lengths",
        "left_out = 0 * lengths",
        ("masks", "packs"),
    ),
}
LATER = ("masks", "packs", "modes")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(f, id=f, marks=[pytest.mark.ci] * bool({*FAULTS[f][2]} & {*LATER}))
        for f in FAULTS
    ],
)
def test_a_fault_is_caught(
    fault: str, text: Callable[[str], str], imported: Callable[[str], ModuleType]
) -> None:
    old, new, caught = FAULTS[fault]
    assert old in text("softmax")
    with deterministic_torch():
        found = surface(imported(text("softmax").replace(old, new)))
        rows = [run(BY_NAME[check], found) for check in caught]
    missed = [row.name for row in rows if row.outcome is Outcome.KEPT]
    assert not missed, f"{fault}: not caught by {', '.join(missed)}"


def test_the_module_itself_says_what_it_does_not_promise(
    text: Callable[[str], str], imported: Callable[[str], ModuleType]
) -> None:
    with deterministic_torch():
        found = surface(imported(text("softmax")))
        rows = {name: run(BY_NAME[name], found) for name in ("fused", "streaming", "hessian")}
    assert all(row.outcome is Outcome.KEPT for row in rows.values()), rows
    assert rows["streaming"].figure.startswith("not promised: it keeps every token, 120 bytes each")
    assert "second derivatives" in rows["fused"].figure
    assert found.smooth == ("parallel",) and found.growing == ("keys", "values", "seen")


def test_other_modules_have_no_attention(
    text: Callable[[str], str], imported: Callable[[str], ModuleType]
) -> None:
    found = surface(imported(text("linear_attn")))
    assert run(BY_NAME["fused"], found).figure == "it is no softmax attention"
    assert found.smooth == found.modes and not found.growing
