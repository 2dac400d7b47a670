"""Damaged modules are caught: a check that has never failed is not known to work."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import pytest

from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, deterministic_torch, run
from dsfc.validate.surface import surface

BY_NAME = {check.name: check for check in CHECKS}


@dataclass(frozen=True)
class Fault:
    """A change of an emitted text that a check must catch.

    Attributes:
        what: in words.
        pattern: a regular expression that the text must hold.
        change: what it becomes.
        caught: names of checks that must catch it, each of them.
    """

    what: str
    pattern: str
    change: str
    caught: tuple[str, ...]


# What every module with a scan has.
ANY = (
    Fault(
        "a token that does not count drives the state",
        r"_as\(_kept\((\w+), counts\), dtype\)",
        r"_as(\1, dtype)",
        ("masks", "packs"),
    ),
    Fault(
        "states of sequences change places",
        r"x\.index_copy\(0, which,",
        "x.index_copy(0, which.flip(0),",
        ("masks", "packs"),
    ),
    Fault(
        "sequences of a pack start a token late",
        r"start\[:, None\] \+ torch",
        "start[:, None] + 1 + torch",
        ("packs",),
    ),
    Fault(
        "masked tokens trade places",
        r"argsort\(dim=1, descending=True, stable=True\)",
        "argsort(dim=1, descending=True, stable=True).flip(1)",
        ("masks",),
    ),
    Fault(
        "the initial state is dropped",
        r"_as\((\w+), wide\)(, mode, chunk|,\n\s+mode,\n\s+chunk,?)",
        r"_as(torch.zeros_like(\1), wide)\2",
        ("segments", "past", "steps", "streaming"),
    ),
    Fault(
        "the gradient of the state is missing, chunked",
        r"(def _backward_chunked(?:.|\n)*?\n    return .*), dS$",
        r"\1, torch.zeros_like(dS)",
        ("modes", "segments", "past", "gradcheck"),
    ),
    Fault(
        "the gradient of the state is missing, both modes",
        r"(def _backward_(?:recurrent|chunked)(?:.|\n)*?\n    return .*), dS$",
        r"\1, torch.zeros_like(dS)",
        ("past", "gradcheck"),
    ),
    Fault(
        "float16 accumulator",
        r"return torch.promote_types\(dtype, torch.float32\)",
        "return dtype if dtype is torch.float64 else torch.float16",
        ("precision",),
    ),
    Fault(
        "no wide accumulator",
        r"return torch.promote_types\(dtype, torch.float32\)",
        "return dtype",
        ("wide sums",),
    ),
    Fault(
        "the state starts as whatever memory holds",
        r"torch.zeros\(batch",
        "torch.empty(batch",
        ("definition",),
    ),
    Fault(
        "an operator returns its input",
        r"state.clone\(memory_format=torch.contiguous_format\)",
        "state",
        ("owned memory", "opcheck"),
    ),
    Fault(
        "outputs are strided like inputs",
        r"\*\(x.contiguous\(\) for x in outs\)",
        "*(x.transpose(0, -1).contiguous().transpose(0, -1) for x in outs)",
        ("opcheck",),
    ),
    Fault(
        "no shape function",
        r"        torch.library.register_fake\(qualname, fake\)\n",
        "",
        ("meta", "opcheck", "compile"),
    ),
    Fault(
        "the rule for vmap mixes samples",
        r"x\.expand\(size, \*x\.shape\)",
        "x.repeat_interleave(size, 0).view(size, *x.shape)",
        ("vmap",),
    ),
    Fault(
        "no formula for the counter of operations",
        r"    _FLOPS\[getattr\(ops, name\)\] = flops\n",
        "",
        ("flops",),
    ),
    Fault(
        "the gradient has no gradient",
        r"back: Any = torch.func.vjp\(gradient, \*ctx.saved_tensors\)\[1\]\n        return .*",
        "return (None,) * 99",
        ("gradgradcheck", "hessian", "third order"),
    ),
    Fault(
        "forward mode fails in other words",
        r"raise NotImplementedError\((?:.|\n)*?\n            \)",
        'raise NotImplementedError("no")',
        ("forward mode",),
    ),
    Fault(
        "the operators are registered anew on every import",
        r"    if getattr\(ops, name, None\) is None:\n",
        "    if True:\n",
        ("imports",),
    ),
    Fault(
        "states of other mixers are taken",
        r"if found != spec:",
        "if False:",
        ("imports",),
    ),
    Fault(
        "the chunk size is not checked",
        r"chunk < 1",
        "False",
        ("complaints",),
    ),
    Fault(
        "the graph is left in between",
        r"(    dtype = _dtype\(u\)\n)",
        r"\1    torch._dynamo.graph_break()\n",
        ("compile",),
    ),
    Fault(
        "a branch on the length",
        r"(    dtype = _dtype\(u\)\n)",
        r"\1    u = u * 1.0 if u.shape[1] > 60 else u\n",
        ("dynamic",),
    ),
    Fault(
        "the last token is mixed with the first",
        r"(    dtype = _dtype\(u\)\n)",
        r"\1    u = u + 1e-3 * u[:, -1:]\n",
        ("definition", "causality"),
    ),
    Fault(
        "rows of a batch are mixed",
        r"(    dtype = _dtype\(u\)\n)",
        r"\1    u = u + 1e-9 * u.mean(0, keepdim=True)\n",
        ("definition", "rows"),
    ),
    Fault(
        "an input is taken to be contiguous",
        r"(    dtype = _dtype\(u\)\n)",
        r"\1    u = torch.as_strided(u, u.shape, torch.empty(u.shape, device='meta').stride())\n",
        ("layouts",),
    ),
    Fault(
        "the state keeps the sequence alive",
        r"return \(y, State\(\*states\)\) if return_state else y",
        "states = [torch.cat((s.flatten(), u.detach().flatten().to(s)))[: s.numel()].view(s.shape)"
        " for s in states]\n        return (y, State(*states)) if return_state else y",
        ("streaming",),
    ),
)
# The skeletons have places of their own to go wrong.
OF = {
    "normalized_attn": (
        Fault("a mask is dropped", r"\.tril_?\(\)", "", ("definition", "causality")),
        Fault(
            "the diagonal is masked too",
            r"\.tril_?\(\)",
            ".tril(-1)",
            ("definition", "modes"),
        ),
        Fault(
            "wrong sign between chunks",
            r"drive_n\.add_\(states\[-1\]\)",
            "drive_n.sub_(states[-1])",
            ("definition", "modes"),
        ),
        Fault(
            "a chunk sees itself as its past",
            r"\*past, S = states",
            "past, S = states[1:], states[-1]",
            ("definition", "modes", "segments"),
        ),
        Fault(
            "the last chunk is cut short",
            r"count = -\(-x.shape\[1\] // chunk\)",
            "count = max(x.shape[1] // chunk, 1)",
            ("definition", "modes"),
        ),
    ),
    "ssd": (
        Fault(
            "wrong sign of the decay",
            r"S_log_decay = -\(",
            "S_log_decay = (",
            ("definition", "extremes"),
        ),
        Fault(
            "the decays of two heads change places",
            r"after = F\.pad\(rates",
            "rates = rates.flip(1)\n    after = F.pad(rates",
            ("definition", "modes", "segments"),
        ),
        Fault(
            "the drive decays with its own token",
            r"steps\.tril\(-1\)\.cumsum",
            "steps.tril().cumsum",
            ("definition", "modes"),
        ),
        Fault(
            "decays as differences of sums",
            r"pair = steps\.tril\(-1\)\.cumsum_\(-2\)\.exp_\(\)\.tril_\(\)",
            "s = g.cumsum(-1)\n    pair = (s[..., :, None] - s[..., None, :]).exp().tril()",
            ("extremes",),
        ),
        Fault(
            "no decay between the chunks",
            r"drive_n\.addcmul_\(decay_n, states\[-1\]\)",
            "drive_n.add_(states[-1])",
            ("definition", "modes"),
        ),
        Fault(
            "the decay's gradient does not see beyond the chunk",
            r"return inside \+ left \+ right \+ across.unsqueeze\(-1\)",
            "return inside + left + right",
            ("definition", "modes", "gradcheck"),
        ),
        Fault(
            "the decay's gradient is shifted by a token",
            r"right = F\.pad\(right, \(1, -1\)\)\.cumsum\(-1\)",
            "right = right.cumsum(-1)",
            ("definition", "modes"),
        ),
    ),
    "s6": (
        Fault(
            "wrong sign of the decay",
            r"return -\(g1\[\.\.\., None\] \* g2\)",
            "return g1[..., None] * g2",
            ("definition",),
        ),
        Fault(
            "the transposed decay",
            r"return -\(g1\[\.\.\., None\] \* g2\)",
            "return -(g1[..., None] * g2).flip(-2, -1)",
            ("definition",),
        ),
        Fault(
            "a gradient of the decay is forgotten",
            r"dg2 \+= leaves\[1\]\.sum\(0\)",
            "dg2 += 0",
            ("definition", "modes", "gradcheck"),
        ),
        Fault(
            "the decay's gradient reads the state after the token",
            r"dg\[1:\] \*= states\[:-1\]",
            "dg[1:] *= states[1:]",
            ("definition", "modes"),
        ),
        Fault(
            "all states of the sequence at once",
            r"(def _forward_recurrent(?:.|\n)*?)    return _stack",
            r"\1    torch.zeros(v.shape[1], *S.shape)\n    return _stack",
            ("memory",),
        ),
    ),
    "rg_lru": (
        Fault(
            "a chunk starts from nothing",
            r"        starts\.append\(S\)\n",
            "        starts.append(torch.zeros_like(S))\n",
            ("definition", "modes", "segments"),
        ),
        Fault(
            "the last chunk is cut short",
            r"if whole < length:",
            "if False:",
            ("definition", "modes"),
        ),
        Fault(
            "backwards the decay comes one token late",
            r"weights = \(torch\.ones_like\(decays\[0\]\), .*",
            "weights = decays",
            ("definition", "modes"),
        ),
    ),
    "gla": (
        Fault(
            "what a block passes on is not decayed by its second half",
            r" +early \*= whole.*\n",
            "",
            ("definition", "modes"),
        ),
        Fault(
            "a token does not read its own key",
            r"scores\.diagonal\(.*",
            "",
            ("definition", "modes"),
        ),
        Fault(
            "the decay's gradient leaves the pairs inside a block out",
            r" +_late\(dg_t, size\)\.add_.*\n",
            "",
            ("definition", "modes", "gradcheck"),
        ),
        Fault(
            "the decay's gradient does not see beyond the chunk",
            r" \+ across\.unsqueeze\(-2\)",
            "",
            ("definition", "modes", "gradcheck"),
        ),
    ),
    "gated_deltanet": (
        Fault(
            "what a token adds is taken away from what the next one takes",
            r"solve_triangular\(-pairs",
            "solve_triangular(pairs",
            ("definition", "modes"),
        ),
        Fault(
            "a token finds what it writes",
            r"k_k, r = k_k\.tril_\(-1\)",
            "k_k, r = k_k.tril_()",
            ("definition", "modes"),
        ),
        Fault(
            "a chunk's transition does not decay",
            r"\.add_\(whole\.squeeze\(-1\)\)",
            ".add_(1)",
            ("definition", "modes", "segments"),
        ),
        Fault(
            "what a token finds does not pass over its decay",
            r"q_k \* do_e \+ k_k \* de_e",
            "q_k * do_e",
            ("definition", "modes", "gradcheck"),
        ),
        Fault(
            "the strength's gradient leaves out what the chunk writes",
            r"f_t, de_t = k_head @ past \+ k_k @ e_t",
            "f_t, de_t = k_head @ past",
            ("definition", "modes", "gradcheck"),
        ),
        Fault(
            "the gradient of what is taken does not see beyond the chunk",
            r"w_back @ future \+ u_back",
            "u_back",
            ("definition", "modes", "gradcheck"),
        ),
    ),
    "h3": (
        Fault(
            "the transform wraps around",
            r"size = 2 \* x\.shape\[-1\]",
            "size = x.shape[-1]",
            ("definition", "modes", "causality"),
        ),
        Fault(
            "the next tokens come before",
            r"signal\.narrow\(-1, 0, length\)",
            "signal.roll(-1, -1).narrow(-1, 0, length)",
            ("definition", "causality"),
        ),
        Fault(
            "gradients at the values, not at their conjugates",
            r"x\.conj_physical\(\) for x in",
            "x for x in",
            ("definition", "gradcheck"),
        ),
        Fault(
            "the imaginary part is lost in a cast",
            r"torch\.view_as_complex\(parts\.to\(_accumulator\(parts\.dtype\)\)\)",
            "torch.view_as_complex(parts) if parts.element_size() == 8 else parts[..., 0].float()",
            ("dtypes",),
        ),
        Fault(
            "a chunk starts from nothing",
            r" +out \+= _series\(q \* torch\.exp\(g\) \* past.*\n",
            "",
            ("definition", "modes", "segments"),
        ),
        Fault(
            "the reads' gradient does not see beyond the chunk",
            r" +dq = dq \+ \(past .*\n",
            "",
            ("modes", "gradcheck"),
        ),
    ),
    "linear_attn": (
        Fault(
            "the denominator forgets the state",
            r"(\w+)_before = torch\.cat\(\((.*), (\w+)\.unsqueeze\((\d)\)\), -1\)",
            r"\1_before = torch.cat((\2, torch.zeros_like(\3).unsqueeze(\4)), -1)",
            ("segments", "past", "steps"),
        ),
    ),
    "short_convolution": (
        Fault(
            "the filter looks one token too far back",
            r"start - r, length",
            "start - r - 1, length",
            ("definition",),
        ),
        Fault(
            "the register is not moved on",
            r"return _as\(y, dtype\), _last\(u_all, u_past, lengths, mode\)",
            "return _as(y, dtype), u_past.clone()",
            ("segments", "steps", "past"),
        ),
        Fault(
            "the register holds the end of a row, not of its sequence",
            r"at = lengths\[:, None\]",
            "at = torch.full_like(lengths, x.shape[1] - like.shape[1])[:, None]",
            ("masks", "packs"),
        ),
        Fault(
            "the register is a view of the sequence",
            r", copy=True\)",
            ")",
            ("streaming",),
        ),
    ),
}
SLOW = ("compile", "dynamic", "export")
SOON = ("normalized_attn", "s6", "rg_lru", "gla", "short_convolution")


def marks(name: str, fault: Fault) -> tuple[pytest.MarkDecorator, ...]:
    """A few classes in the fast tier, tracing and the others in CI."""
    slow = set(fault.caught) & set(SLOW)
    return (pytest.mark.ci,) if slow or name not in SOON else ()


CASES = [
    pytest.param(name, fault, id=f"{name}: {fault.what}", marks=marks(name, fault))
    for name, own in OF.items()
    for fault in (*(ANY if name in ("ssd", "linear_attn") else ()), *own)
]


@pytest.mark.share(9, ci=30)
@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_is_caught(
    name: str,
    fault: Fault,
    text: Callable[[str], str],
    imported: Callable[[str], ModuleType],
) -> None:
    damaged, count = re.subn(fault.pattern, fault.change, text(name), flags=re.MULTILINE)
    assert count, f"the text of {name} has no {fault.pattern}"
    with deterministic_torch():
        found = surface(imported(damaged))
        rows = [run(BY_NAME[check], found) for check in fault.caught]
    missed = [row.name for row in rows if row.outcome is Outcome.KEPT]
    assert not missed, f"{fault.what}: not caught by {', '.join(missed)}"


@pytest.mark.ci
@pytest.mark.share(1, ci=13)
@pytest.mark.parametrize("name", OF)
def test_the_module_itself_passes_what_catches_its_faults(
    name: str, text: Callable[[str], str], imported: Callable[[str], ModuleType]
) -> None:
    checks = {c for case in CASES if case.values[0] == name for c in case.values[1].caught}
    checks -= set(SLOW)  # tests/specs runs those on every module
    with deterministic_torch():
        found = surface(imported(text(name)))
        rows = [run(BY_NAME[check], found) for check in sorted(checks)]
    broken = [f"{row.name}: {row.figure}" for row in rows if row.outcome is Outcome.BROKEN]
    assert not broken
