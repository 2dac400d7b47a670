"""Plan → text of a torch module, section by section: `module.py.j2` has their order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from dsfc.plan.ir import Plan

from .functional import FunctionalText, functional
from .functions import functions_of
from .header import HeaderText
from .layer import LayerText
from .layout import entry, fitted, rule, wrapped
from .modes import Modes, modes
from .operators import operators, skeletons
from .reference import ReferenceText, reference
from .signature import signature
from .state import StateText


@cache
def _environment() -> Environment:
    folder = files(__package__)

    def source(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

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


def _filled(template: str, **context: Any) -> str:  # noqa: ANN401 - whatever the template asks for
    return _environment().get_template(template).render(**context).strip("\n")


def render_module(
    plan: Plan,
    identity: Any,  # noqa: ANN401 - an Identity; backends do not import emit
    identifier: Callable[[str], str],
    class_name: str,
    function_name: str,
) -> str:
    """Returns the module's text; see `dsfc.emit.backend.Backend`."""
    names = signature(plan, identifier, class_name, function_name)
    choice = modes(plan)
    scans = skeletons(plan)
    layer = LayerText(plan, names)
    function = functional(plan, names, choice, scans)
    ops = tuple(operators(scans, _filled))
    literal = reference(plan, names)
    code = _code(layer, function, choice, ops, literal)
    spec, namespace = identity.spec[:16], identity.namespace
    text = _filled(
        "module.py.j2",
        signature=names,
        modes=choice,
        header=HeaderText(plan, identity.source, spec, namespace, names, choice, code),
        state=StateText(plan, names),
        layer=layer,
        functional=function,
        functions=functions_of(code),
        operators=ops,
        reference=literal,
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
            *(*layer.reset, *function.body.lines, *function.helpers, choice.text, *ops),
            *(*literal.definitions.lines, *literal.helpers),
        ]
    )
