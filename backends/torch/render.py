"""Plan → text of a torch module, section by section: `module.py.j2` has their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from dsfc.plan.ir import Plan

from ..shared.section import section
from .calls import ScanCall
from .functional import FunctionalText, functional
from .header import HeaderText
from .layer import LayerText
from .layout import entry, fitted, rule, wrapped
from .modes import Modes, modes
from .operators import closing, operators, skeletons
from .pairs import pairs
from .recurrence import recurrences
from .reference import ReferenceText, reference
from .signature import Signature, signature
from .skeletons import Skeleton
from .state import StateText


@dataclass(frozen=True, slots=True)
class Target:
    """What a module runs on besides torch, and how its text then differs.

    Attributes:
        plan: the plan as it is printed, with the same inputs, parameters, states and output.
        skeletons: what the templates of its scans are filled with, in order.
        call: prints the call of an operator.
        packages: folders of templates; one of an earlier folder comes before its namesake.
        standard: imports of the standard library.
        imports: lines behind the imports of torch.
        shared: texts of what all operators need, from what fills templates, names and skeletons.
        explained: first statements of `explain`.
        runs: what `explain` says a call runs on, as the inside of an f-string.
    """

    plan: Callable[[Plan], Plan]
    skeletons: Callable[[Plan], tuple[Skeleton, ...]]
    call: Callable[..., ScanCall]
    packages: tuple[str, ...]
    standard: tuple[str, ...]
    imports: tuple[str, ...]
    shared: Callable[[Callable[..., str], Signature, tuple[Skeleton, ...]], tuple[str, ...]]
    explained: Callable[[Signature], tuple[str, ...]]
    runs: str


_PACKAGE = __package__ or ""
TORCH = Target(
    plan=lambda plan: plan,
    skeletons=skeletons,
    call=ScanCall,
    packages=(_PACKAGE,),
    standard=(),
    imports=(),
    shared=lambda filled, names, scans: (),
    explained=lambda names: (),
    runs="torch on {device}",
)


@cache
def _environment(packages: tuple[str, ...]) -> Environment:
    folders = [files(package) for package in packages]

    def source(name: str) -> str:
        found = next(f for f in (folder.joinpath(name) for folder in folders) if f.is_file())
        return found.read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The result is Python; names are identifiers, and `header` makes a spec's texts safe.
        autoescape=False,
    )
    environment.globals.update(rule=rule, entry=entry, wrapped=wrapped)
    return environment


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
) -> str:
    """Returns the module's text; see `dsfc.emit.backend.Backend`."""
    names = signature(plan, identifier, class_name, function_name)
    choice = modes(plan)
    scans = target.skeletons(plan)
    stepped, summed = recurrences(plan, identifier), pairs(plan, identifier)
    function = functional(target.plan(plan), names, choice, scans, stepped, target.call)
    layer = LayerText(plan, names, function.body.sizes)
    filled = _filled(target.packages)
    maxima, declared = bool(plan.maxima), plan.maxima != plan.references
    ops = (
        *target.shared(filled, names, scans),
        *operators(scans, stepped, summed, choice.legal, filled, maxima, declared),
    )
    if choice.attentions:
        ops = (*ops, filled("attention.py.j2", operators=choice.operators))
    literal = reference(plan, names)
    code = _code(layer, function, choice, ops, literal)
    spec, namespace = identity.spec[:16], identity.namespace
    text = filled(
        "module.py.j2",
        target=target,
        signature=names,
        modes=choice,
        header=HeaderText(
            plan, identity.source, spec, namespace, names, choice, code, target.standard
        ),
        state=StateText(plan, names),
        layer=layer,
        functional=function,
        runtime=section(),
        operators=ops,
        reference=literal,
        closing=closing(scans, stepped, summed, maxima, declared),
    )
    return "\n".join(map(fitted, text.split("\n"))) + "\n"


def _code(
    layer: LayerText,
    function: FunctionalText,
    choice: Modes,
    ops: tuple[str, ...],
    literal: ReferenceText,
) -> str:
    """What the sections print besides the words of their templates: it decides the imports."""
    return "\n".join(
        [
            *(*layer.reset, *function.body.lines, choice.text, *ops),
            *(*literal.definitions.lines, *literal.helpers),
        ]
    )
