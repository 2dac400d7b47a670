"""Plan → text of a torch module, section by section: `module.py.j2` has their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader

from dsfc.plan.ir import Plan
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.whole_layer import WholeLayer
from dsfc.python_text import names_in, parsed

from ..shared.section import Section, section
from .calls import ScanCall
from .checkpoints import CheckpointsText
from .context import runtime
from .functional import functional
from .header import HeaderText
from .imports import imports, imports_from_beside
from .layer import LayerText
from .layout import bound_text, fitted_lines, rule
from .modes import modes
from .operators import closing, operators, skeletons
from .pairs import pairs
from .recurrence import recurrences
from .reference import reference
from .signature import Signature, signature
from .skeletons import Skeleton
from .state import StateText
from .templates import environment
from .whole_layer import WholeLayerText


@dataclass(frozen=True, slots=True)
class Target:
    """What a module runs on besides torch, and how its text then differs.

    Attributes:
        plan: the plan as it is printed, with the same inputs, parameters, states and output.
        skeletons: what the templates of its scans are filled with, in order.
        call: prints the call of an operator.
        packages: folders of templates; one of an earlier folder comes before its namesake.
        imports: lines behind the imports of torch.
        shared: texts of what all operators need, from what fills templates, names and skeletons.
        explained: first statements of `explain`.
        runs: what `explain` says a call runs on, as the inside of an f-string.
        runtime: the section that all its modules share.
        last: statements behind the runtime.
        distributed: whether processes may share a sequence.
    """

    plan: Callable[[Plan], Plan]
    skeletons: Callable[[Plan], tuple[Skeleton, ...]]
    call: Callable[..., ScanCall]
    packages: tuple[str, ...]
    imports: tuple[str, ...]
    shared: Callable[[Callable[..., str], Signature, tuple[Skeleton, ...]], tuple[str, ...]]
    explained: Callable[[Signature], tuple[str, ...]]
    runs: str
    runtime: Section = field(default_factory=section)
    last: tuple[str, ...] = ()
    distributed: bool = False


_PACKAGE = __package__ or ""
TORCH = Target(
    plan=lambda plan: plan,
    skeletons=skeletons,
    call=ScanCall,
    packages=(_PACKAGE,),
    imports=(),
    shared=lambda filled, names, scans: (),
    explained=lambda names: (),
    runs="torch on {device}",
)


def shared_by_processes(target: Target) -> Target:
    """Returns a target whose modules have sequences that processes may share."""
    return replace(target, runtime=runtime(target.runtime), distributed=True)


def torch_alone(why: str) -> Target:
    """Returns the target of a mixer of which no kernel runs anything.

    Args:
        why: torch runs it, as a clause.
    """
    lines = (*bound_text("why =", why, " " * 8), '        where = f"torch on {device} ({why})"')
    return replace(TORCH, explained=lambda names: lines, runs="{where}")


@cache
def _environment(packages: tuple[str, ...]) -> Environment:
    folders = [files(package) for package in packages]

    def source(name: str) -> str:
        file = next(f for f in (folder.joinpath(name) for folder in folders) if f.is_file())
        return file.read_text(encoding="utf-8")

    return environment(FunctionLoader(source))


def _filled(packages: tuple[str, ...]) -> Callable[..., str]:
    """Returns a function that fills the template of a name with what is given by keyword."""

    def filled(template: str, **context: Any) -> str:  # noqa: ANN401 - whatever it asks for
        return _environment(packages).get_template(template).render(**context).strip("\n")

    return filled


def render_module(
    plan: Plan,
    identity: Any,  # noqa: ANN401 - an Identity; backends do not import emit
    identifier: Callable[[str], str],
    class_name: str,
    function_name: str,
    target: Target,
    beside: bool = False,
    whole: WholeLayer | None = None,
) -> tuple[str, str]:
    """Returns the module's text and its namespace; see `dsfc.emit.backend.Backend`."""
    names = signature(plan, identifier, class_name, function_name)
    choice = modes(plan)
    scans = target.skeletons(plan)
    stepped, summed = recurrences(plan, identifier), pairs(plan, identifier)
    function = functional(
        target.plan(plan), names, choice, scans, stepped, target.call, target.distributed
    )
    layer = LayerText(
        plan,
        names,
        function.body.sizes,
        _in_place(plan, scans),
        _at_once(plan, scans),
        target.distributed,
        None if whole is None else whole.heads,
    )
    around = (
        None
        if whole is None
        else WholeLayerText(plan, names, whole, layer.steps, target.distributed)
    )
    filled = _filled(target.packages)
    state = StateText(plan, names)
    maxima, declared = bool(plan.maxima), plan.maxima != plan.references
    ops = (
        *target.shared(filled, names, scans),
        *operators(scans, stepped, summed, filled),
    )
    own = filled(
        "module.py.j2",
        target=target,
        signature=names,
        modes=choice,
        state=state,
        layer=layer,
        whole=around,
        checkpoints=CheckpointsText(names, choice, layer.steps),
        functional=function,
        operators=ops,
        reference=reference(plan, names),
    )
    last = *target.last, *closing(scans, stepped, summed, maxima, declared)
    tail = "\n".join(["", "", "", rule("operators"), *last]) if last else ""
    runtime = target.runtime
    inlined = "" if beside else filled("closing.py.j2", runtime=runtime)
    named = names_in(parsed(f"{own}\n{tail}")) | (frozenset() if beside else runtime.named)
    lines = tuple(imports(named, () if beside else runtime.imports))
    shared = [n for n in runtime.names if n in named or not n.startswith("_")]
    elsewhere = tuple(imports_from_beside(runtime.module, shared)) if beside else ()
    head = filled(
        "header.py.j2",
        target=target,
        modes=choice,
        header=HeaderText(
            plan,
            identity.source,
            identity.papers,
            identity.spec[:16],
            names,
            choice,
            lines,
            () if around is None else around.class_names,
        ),
        elsewhere=elsewhere,
        state=state,
    )
    head, own, tail = map(fitted_lines, (head, own, tail))
    namespace = identity.namespace("\n".join((head, own, inlined, tail)))
    named_so = [f'NAMESPACE = "{namespace}"']
    if choice.operators or plan.maxima:
        named_so.append("_OPS = getattr(torch.ops, NAMESPACE)")
    rest = (inlined + tail).lstrip("\n")
    return "\n".join(
        [head, *named_so, "", "", own, *(["", "", rest] if rest else ())]
    ) + "\n", namespace


def _in_place(plan: Plan, scans: tuple[Skeleton, ...]) -> bool:
    """Whether kernels of all scans write states where those before lie, and nothing else recurs."""
    others = any(isinstance(k, Recurrence | Attention | AllPairs) for k in plan.kernels)
    return bool(scans) and not others and all(s.in_place for s in scans)


def _at_once(plan: Plan, scans: tuple[Skeleton, ...]) -> bool:
    """Whether the states after all tokens of a call are known: no operator keeps them to itself."""
    return not any(isinstance(k, Recurrence) for k in plan.kernels) and all(
        s.gives_each for s in scans
    )


def runtime_file(runtime: Section) -> tuple[str, str]:
    """Returns the name and the text of the file that holds the runtime of modules beside it."""
    lines = imports(runtime.named, runtime.imports)
    text = _filled(TORCH.packages)("runtime.py.j2", imports=tuple(lines), runtime=runtime)
    return f"{runtime.module}.py", f"{text}\n"
