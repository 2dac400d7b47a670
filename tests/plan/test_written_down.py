"""Plans, costs of kernels and verdicts on damaged plans are what is written down in `golden/`.

The mixers are few and reach, each part at least twice, all of the planner that any mixer of the
tests reaches. A change that is meant is written down by `python tests/plan/test_written_down.py`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":  # else conftest.py has done so
    TESTS = Path(__file__).parents[1]
    sys.path[:0] = [str(TESTS / folder) for folder in ("plan", "derive", "backends/torch")]

import pytest
from damages import damages
from dsfc.backends.torch.cost import costs_text
from dsfc.backends.triton.cost.counts import KernelCost
from dsfc.backends.triton.cost.devices import DEVICES, seconds, value
from dsfc.backends.triton.cost.scans import plan_costs
from dsfc.backends.triton.nodes import computes
from small_mixers import DERIVED
from unusual_specs import COMPILED

import dsfc
from dsfc.fused.fuse import fuse
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Plan
from dsfc.plan.render import render
from dsfc.plan.verify import verify

GOLDEN = Path(__file__).parent / "golden"
SHIPPED = (
    "dlr_bidirectional",
    "dlr_prod",
    "h3",
    "hgrn",
    "linear_attn",
    "linear_rnn",
    "lru",
    "mlstm",
    "rg_lru",
    "rwkv4",
    "rwkv7",
    "s6",
    "softmax",
)
UNUSUAL = (
    "all_forms_of_scan",
    "attention_beside_a_state",
    "attention_beside_feedback",
    "both_ways_by_key",
    "complex_inside_a_map",
    "decay_elementwise_of_maxima",
    "decay_elementwise_per_head",
    "decay_guard_by_a_maximum",
    "decay_of_a_later_token",
    "decay_of_a_product_per_entry",
    "decay_per_key_then_rewrite",
    "decay_selective_entry_by_entry",
    "dense_backward_chain",
    "dense_read_before",
    "earlier_tokens_in_pairs",
    "elementwise_before",
    "elementwise_complex_rate",
    "feedback_of_complex_states",
    "filter_of_first",
    "filtered_read_in_an_update",
    "filters_of_all_shapes",
    "first_in_a_phase",
    "fixed_numbers_only",
    "flow_by_zoh",
    "grouped_queries",
    "heads_last",
    "idle_drive",
    "keys_complex_per_key",
    "mean_of_a_state",
    "mean_of_a_state_decayed_by_channel",
    "memoryless",
    "mixed_heads",
    "momentum_of_a_rewrite",
    "opposite_of_a_power",
    "pairs_of_complex_values",
    "pairs_of_distances_alone",
    "pairs_of_one_value",
    "pairs_that_drive_a_state",
    "products_of_decays",
    "reductions",
    "rewrite_between_decays",
    "rewrite_of_a_ratio",
    "selective_complex_backward",
    "selective_complex_fixed_phase",
    "selective_complex_flow",
    "selective_complex_rate",
    "selective_complex_read_of_both_planes",
    "selective_complex_unit",
    "several_lags",
    "softmax_of_a_parameter",
    "softmax_of_a_softmax_by_groups",
    "softmax_of_one_key",
    "softmax_of_products",
    "state_of_parameters",
    "sum_of_a_sum",
    "token_counter",
    "two_head_axes",
    "two_keys",
    "two_rewrites",
    "two_selective",
    "uneven_chains",
    "update_by_a_constant",
    "words_of_this_mixer",
    "zero_before_the_start",
)
SMALL = {
    "flows": (
        "a complex flow",
        "a flow backwards",
        "bilinear of rank two",
    ),
    "forms": (
        "product of the future",
        "product over a window",
        "quotient of sides",
        "turning",
    ),
    "read_outs": (
        "a cast of a complex read",
        "a contraction of three states",
        "a contraction of two states that feed each other",
        "a guard that is added",
        "a guard with the constant first",
        "a ratio over a sum over time, which has an axis more",
        "a running maximum in a read-out",
        "a state over another's functions",
        "attention beside a state",
        "attention over a state and the one before",
    ),
    "states": (
        "a circle of four",
        "a dense map after a gate",
        "a state along an axis of maps for each head",
        "a state of complex and real factors",
        "a state that runs backwards",
        "functions of the read-out",
        "its own output, delayed",
        "the output is a running maximum",
        "what an update reads twice through one name",
    ),
    "sums": (
        "a complex exponent",
        "a conjugate",
        "a lag times two, to the future",
        "a mean inside",
        "a power below 0",
        "a rename to an axis that is summed",
        "a running product that ends outside",
        "every pair of parts",
        "powers of two contractions",
    ),
    "updates": (
        "a bilinear step by hand",
        "a channel decay before the sum",
        "a constant drive",
        "a decay of every axis",
        "a full map",
        "a full map and a low rank",
        "a rank of each side",
        "a state that reads another's present",
        "an identity factor",
        "no drive",
        "ones as a drive",
        "streams of complex values",
        "streams of every degree",
    ),
}


def _unusual(name: str) -> str:
    return f"mixer {name} {{\n{COMPILED[name]}\n}}\n"


MIXERS = {
    **{name: None for name in SHIPPED},
    **{name: _unusual(name) for name in UNUSUAL},
    **{f"{t}, {title}": DERIVED[t][title] for t, titles in SMALL.items() for title in titles},
}
"""Title → text of the mixer, None for a shipped one."""


def plan_of(title: str, folder: Path) -> Plan:
    """Plans a mixer."""
    text = MIXERS[title] if title in MIXERS else _unusual(title) if title in COMPILED else None
    if text is None:
        return dsfc.load(title).plan
    path = folder / f"{title if title in COMPILED else 'm'}.dsf"
    path.write_text(text, encoding="utf-8")
    return dsfc.load(path).plan


class Sizes(dict[str, float]):
    """Sizes of axes, those that no test names too: three and more, by their letters."""

    def __missing__(self, name: str) -> float:
        return 3 + sum(name.encode()) % 29


SIZES = Sizes(batch=2, length=2048, width=2, chunk=64, tile=16, segment=512)


def counted(costs: tuple[KernelCost, ...]) -> str:
    """What each pass of each kernel counts at `SIZES`, and its least time on each device."""
    lines = []
    for cost in costs:
        floor = " ".join(f"{value(f, SIZES):.6g}" for f in cost.compulsory_bytes)
        lines.append(f"{cost.scan}, {cost.way}: no less than {floor} bytes")
        for p in cost.passes:
            counts = (
                p.bytes, p.redundant_reads, p.operations, p.exponentials, p.instructions,
                p.programs, p.steps,
            )  # fmt: skip
            numbers = " ".join(f"{value(e, SIZES):.6g}" for e in counts)
            lines.append(f"  {p.name}: {p.launches} launches, {numbers}")
            for shared in (True, False):
                times = " ".join(f"{seconds(p, d, SIZES, shared):.4g}" for d in DEVICES.values())
                lines.append(f"    {times} s" + ("" if shared else " where nothing is shared"))
    return "\n".join(lines) + "\n"


EVERY_KIND = (
    "mlstm", "deltanet", "lru", "dense_backward_chain", "dense_read_before",
    "attention_beside_feedback", "runs_backward", "token_shift",
    "power_of_a_varying_base",
)  # fmt: skip
"""Mixers whose plans have among them every kind of node that `verify` knows."""


def judged(plan: Plan) -> str:
    """What `verify` says of each plan that differs from this one in one field."""
    lines = []
    for words, damaged in damages(plan):
        try:
            verify(damaged)
            lines.append(f"{words}: stands")
        except PlanError as problem:
            lines.append(f"{words}: {problem}")
    return "\n".join(lines) + "\n"


def golden(file: str) -> dict[str, str]:
    """Title → what is written down."""
    held = (GOLDEN / f"{file}.txt").read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)\n", held, flags=re.MULTILINE)[1:]
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.share(20)
@pytest.mark.parametrize("title", MIXERS)
def test_a_plan_and_its_costs_are_as_written_down(title: str, tmp_path: Path) -> None:
    plan = plan_of(title, tmp_path)
    assert render(plan).strip() == golden("plans")[title]
    assert costs_text(plan).strip() == golden("torch_costs")[title]
    assert counted(plan_costs(fuse(plan, computes))).strip() == golden("kernel_costs")[title]


@pytest.mark.parametrize("title", EVERY_KIND)
def test_each_field_that_is_changed_is_judged_as_written_down(title: str, tmp_path: Path) -> None:
    """Those that stand are what another check sees, the accounting or the trial of the plan."""
    assert judged(plan_of(title, tmp_path)).strip() == golden("damaged_plans")[title]


@pytest.mark.parametrize("file", ["plans", "torch_costs", "kernel_costs"])
def test_nothing_else_is_written_down(file: str) -> None:
    assert set(golden(file)) == set(MIXERS)


def write() -> None:
    """Writes down what the mixers are planned as now."""
    with tempfile.TemporaryDirectory() as folder:
        plans = {title: plan_of(title, Path(folder)) for title in MIXERS}
        damaged = {title: judged(plan_of(title, Path(folder))) for title in EVERY_KIND}
    for file, text in {
        "plans": {t: render(p) for t, p in plans.items()},
        "torch_costs": {t: costs_text(p) for t, p in plans.items()},
        "kernel_costs": {t: counted(plan_costs(fuse(p, computes))) for t, p in plans.items()},
        "damaged_plans": damaged,
    }.items():
        held = "\n".join(f"## {title}\n{each}" for title, each in text.items())
        (GOLDEN / f"{file}.txt").write_text(held, encoding="utf-8")


if __name__ == "__main__":
    write()
