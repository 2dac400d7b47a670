"""A plan as text: stable, short, and back from JSON as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shipped_specs import PLANNED
from unusual_specs import COMPILED

from dsfc.expr.json import decode, encode
from dsfc.plan.ir import Plan
from dsfc.plan.render import render

GOLDEN = Path(__file__).parent / "golden"
# One per form of scan, a ratio of two columns, and one without scans.
SHOWN = (
    "normalized_attn",
    "linear_attn",
    "gla",
    "s6",
    "rg_lru",
    "s4d",
    "deltanet",
    "short_convolution",
)


@pytest.mark.parametrize("name", SHOWN)
def test_plans_render_as_written_down(name: str, plan_of) -> None:
    text = render(plan_of(name))
    assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert len(text.encode()) <= 2048


@pytest.mark.share(5)
@pytest.mark.parametrize("name", PLANNED)
def test_json_gives_the_plan_back(name: str, plan_of) -> None:
    plan = plan_of(name)
    document = json.loads(json.dumps(encode(plan)))
    assert decode(document, Plan) == plan
    assert render(decode(document, Plan)) == render(plan)


@pytest.mark.parametrize("name", ["all_forms_of_scan", "filters_of_all_shapes", "strict_ratio"])
def test_json_gives_unusual_plans_back(name: str, load) -> None:
    plan = load(name, COMPILED[name]).plan
    assert decode(json.loads(json.dumps(encode(plan))), Plan) == plan


def test_what_is_no_plan_is_refused(plan_of) -> None:
    document = encode(plan_of("retnet"))
    for broken in ({}, [], {**document, "value": {}}):
        with pytest.raises(ValueError):
            decode(broken, Plan)


SEEDED = """\
import dsfc
from dsfc.plan.render import render
for name in {names!r}:
    print(render(dsfc.load(name).plan))
"""


@pytest.mark.full
def test_text_does_not_depend_on_the_hash_seed() -> None:
    def shown(seed: str) -> str:
        program = SEEDED.format(names=SHOWN)
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout

    assert shown("1") == shown("77")
