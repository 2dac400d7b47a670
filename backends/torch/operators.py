"""The operators of an emitted module: which skeleton each scan takes, and their text.

A scan is printed by two templates, `op` (registration and gradient, the same for all) and that of
its form (the modes); what scans of one form share is printed once, by `*_shared`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsfc.plan.ir import Buffer, Plan
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.real_parts import is_real_to_real
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Form, Scan

from .forms.table import FORMS
from .pairs import PairsText
from .recurrence import RecurrenceText
from .skeletons import Skeleton

Template = Callable[..., str]

_PARTS_OF_NAMES = frozenset(
    "chunked columns flops futures gradients kernel keys launch native outputs pairs planes read"
    " recurrent sequence states summary torch ungated".split()
)
"""Words behind the direction in names of functions of a scan, of any target."""


def skeletons(plan: Plan) -> tuple[Skeleton, ...]:
    """Returns what the templates of each scan are filled with, in the order of the plan."""
    arrays = {b.name: b for b in plan.arrays}
    scans = [k for k in plan.kernels if isinstance(k, Scan)]
    adjoints = {a.scan: a for a in plan.adjoints}
    kernels = (k for k in plan.kernels if isinstance(k, Scan | Attention | AllPairs | Recurrence))
    several = len({k.form for k in kernels}) > 1
    # The scans of a module share the code that cuts into chunks, heads in front or not.
    shared = all(_is_shared(s, arrays) for s in scans if s.form is Form.MATRIX)
    return tuple(
        _skeleton(s.form)(
            s,
            adjoints[s.name],
            suffix,
            f"_{s.form.value}_" if several else "_",
            arrays,
            shared and s.form is Form.MATRIX,
            is_real_to_real(plan, s),
        )
        for s, suffix in zip(scans, _suffixes([s.name for s in scans]), strict=True)
    )


def _skeleton(form: Form) -> type[Skeleton]:
    skeleton = FORMS[form].skeleton
    assert skeleton is not None, f"scans of form {form.value} are no scans"
    return skeleton


def _suffixes(scans: list[str]) -> list[str]:
    """What follows the names of each scan's functions: nothing, its name, or its number."""
    if len(scans) == 1:
        return [""]
    # `_forward_recurrent` is a function of every scan; none may seem to be one of `recurrent`.
    if any(s.split("_")[0] in _PARTS_OF_NAMES for s in scans):
        return [f"_{k}" for k in range(1, 1 + len(scans))]
    return [f"_{s}" for s in scans]


def _is_shared(scan: Scan, arrays: dict[str, Buffer]) -> bool:
    """Whether a matrix scan's read and key are the same for all heads."""
    if scan.form is not Form.MATRIX or not scan.heads:
        return False
    heads = set(scan.heads)
    assert scan.read is not None and scan.key is not None
    return not heads & set(arrays[scan.read].axes) and not heads & set(arrays[scan.key].axes)


def operators(
    skeletons: tuple[Skeleton, ...],
    stepped: tuple[RecurrenceText, ...],
    summed: tuple[PairsText, ...],
    template: Template,
) -> Iterator[str]:
    """Yields the text of all operators, part by part; nothing where nothing recurs.

    Args:
        skeletons: one per scan.
        stepped: one per recurrence.
        summed: one per sum over all pairs of tokens.
        template: fills the template of a name with what is given by keyword.
    """
    for r in stepped:
        yield template("recurrence.py.j2", s=r)
    for p in summed:
        yield template("pairs.py.j2", s=p)
    for s in skeletons:
        yield template(s.operator, s=s)
        yield template(f"{s.form}.py.j2", s=s.plain)


def closing(
    skeletons: tuple[Skeleton, ...],
    stepped: tuple[RecurrenceText, ...],
    summed: tuple[PairsText, ...],
    maxima: bool,
    declared: bool,
) -> list[str]:
    """Returns the statements behind the runtime, which register operators and make callables."""
    lines = []
    if maxima:
        parts = '"running_max", _running_max, _alike((0, 1)), _running_max_flops'
        lines.append(f"_register(NAMESPACE, {parts})")
    if maxima and declared:
        parts = '"reaching", _reaching, _alike((0, 1)), _reaching_flops'
        lines += [
            f"_register(NAMESPACE, {parts})",
            "_maximum = _maximum_of(_OPS.running_max, _OPS.reaching)",
        ]
    texts = [*(r.closing for r in stepped), *(p.closing for p in summed)]
    return [*lines, *texts, *(s.closing for s in skeletons)]
