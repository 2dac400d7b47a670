"""`dsfc show`: any stage of a mixer as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import mistakes_option
from dsfc.cli.process import bounded
from dsfc.cli.spec import SpecWord, mixer_of
from dsfc.cli.usage import examples

if TYPE_CHECKING:
    from dsfc.api.pipeline import Compilation
    from dsfc.system.ir import System

STAGES = ("ast", "mixer", "system", "structure", "plan", "fused", "adjoint", "kernels", "module")
FORMS = ("index", "kronecker", "phi", "latex", "json")
_EQUATIONS = "h_i = Λ_i h_{i-1} + B_i u_i, y_i = C_i h_i + D_i u_i"
_GAUGES = {
    "lowered": "gauge: lowered (states as they are derived)",
    "paper": "gauge: paper (states divided by their normaliser, so Λ_i = η_{i-1} / η_i)",
    "computed": "gauge: computed (states divided by exp of their running maximum)",
}
_SAME = {
    "paper": "gauge: paper (no output is divided by a normaliser: the same as lowered)",
    "computed": "gauge: computed (no weight of a ratio is without a bound: the same as lowered)",
}


@click.command(
    cls=examples(
        ("dsfc show gla", "a summary and the matrices Λ, B, C, D"),
        ("dsfc show softmax --form phi", "the attention matrix"),
        ("dsfc show gla --form latex", "the matrices for a paper"),
        ("dsfc show gla --stage plan", "the modes in which its module runs, and their costs"),
    ),
    short_help="Show what a mixer is, or any other stage.",
)
@click.argument("spec", type=SpecWord(), metavar="SPEC[:MIXER]")
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default="system",
    show_default=True,
    help="The stage to show; adjoint is the System of the gradient.",
)
@click.option(
    "--form",
    type=click.Choice(FORMS),
    help="How to print a system: index is the equations of its states, kronecker the matrices "
    "Λ, B, C, D, phi the kernel Φ of y = Φ u (for softmax the attention matrix), latex the "
    "matrices for a paper. Every stage but kernels and module has json. By default a summary and "
    "Λ, B, C, D.",
)
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help="Print after the summary also the letters of its papers, the index form, the structure, "
    "the modes and the claims.",
)
@click.option(
    "--gauge",
    type=click.Choice(list(_GAUGES)),
    help="Scaling of the states: lowered is as derived, paper divides each state by its "
    "normaliser, computed divides it by exp of a running maximum where weights have no bound.  "
    "[default: lowered]",
)
@click.option(
    "--backend",
    metavar="NAME",
    help="The backend whose stage is shown. --stage module takes torch by default, --stage kernels "
    "c, --stage fused none. --stage plan also lists which calls run in its kernels and what they "
    "cost.",
)
@mistakes_option
def show(
    spec: str,
    mixer: str | None,
    stage: str,
    form: str | None,
    whole: bool,
    gauge: str | None,
    backend: str | None,
) -> None:
    """Show what a mixer is: a summary and its matrices Λ, B, C, D, or any other stage.

    SPEC may be - for standard input; bases are then read from the current folder.
    """
    if stage not in ("system", "adjoint"):
        if form not in (None, "json"):
            raise click.UsageError(f"--form {form} goes with --stage system or adjoint")
        if gauge is not None:
            raise click.UsageError("--gauge goes with --stage system or adjoint")
    if whole and (form is not None or stage != "system"):
        raise click.UsageError("--all goes with no --form and with --stage system")
    if stage in ("kernels", "module") and form is not None:
        raise click.UsageError(f"--stage {stage} is shown as its text")
    with bounded(f"show {spec}"):
        compilation = mixer_of(spec, mixer)
        if stage == "system" and form is None and gauge != "computed":
            text = _overview(compilation, gauge or "lowered")
            if whole:
                text += f"\n{_letters(compilation)}"
                text += _system(compilation, stage, "index", gauge or "lowered")
        elif stage in ("system", "adjoint"):
            text = _system(compilation, stage, form or "index", gauge or "lowered")
        elif stage == "module":
            text = compilation.module(backend or "torch").text
        elif stage == "kernels":
            text = _kernels(compilation, backend or "c")
        else:
            text = (
                _json(compilation, stage, backend)
                if form == "json"
                else _text(compilation, stage, backend)
            )
    click.echo(text, nl=not text.endswith("\n"))


def _overview(compilation: Compilation, gauge: str) -> str:
    """What the mixer is in a few lines, then Λ, B, C and D."""
    from dsfc.matrices.linear import linear_parts
    from dsfc.structure.summary import summary
    from dsfc.system.index_form import definitions

    few = summary(compilation.structure, compilation.mixer.doc)
    papers = "".join(f"\n  {paper}" for paper in compilation.mixer.papers)
    attends = compilation.structure.attentions and not compilation.system.stages
    form = "phi" if attends else "kronecker"
    _, _, matrices = _system(compilation, "system", form, gauge).rstrip("\n").partition("\n\n")
    heads = [d.axis.name for d in compilation.system.axes if d.axis.heads]
    equation = "the attention matrix Φ" if attends else _EQUATIONS
    per = f", for each {' and '.join(heads)}" if heads else ""
    scaled = ", with states divided by their normaliser" if gauge == "paper" else ""
    linear = any(
        linear_parts(compilation.system, k) for k in range(len(compilation.system.outputs))
    )
    parts = (
        f"{few}{papers}\n",
        f"{equation}{per}{scaled}\n" if attends or linear else "",
        f"{matrices}\n",
        _rest(compilation) if form == "kronecker" else "",
        definitions(compilation.system),
        _legend(matrices),
    )
    return "\n".join(p for p in parts if p)


def _letters(compilation: Compilation) -> str:
    """The letters of each paper beside the names of the spec, in LaTeX; empty if none has any."""
    shown = ""
    for paper in compilation.mixer.papers:
        if paper.letters:
            width = max(len(letter.name) for letter in paper.letters)
            rows = "".join(f"  {x.name:{width}}  {x.latex}\n" for x in paper.letters)
            shown += f"letters of {paper.located}, i the token\n{rows}\n"
    return shown


def _rest(compilation: Compilation) -> str:
    """The outputs that are not linear in a state, each as a formula of what is."""
    from dsfc.expr.text import text
    from dsfc.matrices.linear import linear_parts
    from dsfc.system.formulas import read_out_formula, states

    system = compilation.system
    formulas = [
        f"{output.name} = {text(read_out_formula(output.value, states(system)))}\n"
        for k, output in enumerate(system.outputs)
        if all(part.name != output.name for part in linear_parts(system, k))
    ]
    return "".join(formulas)


def _legend(matrices: str) -> str:
    """Meanings of the signs that occur in matrices."""
    signs = {
        "I_": "I_n is the identity of size n",
        "⊗": "⊗ is the Kronecker product",
        "diag(": "diag(x) is the diagonal matrix of x",
        "1_": "1_n is a column of n ones",
    }
    said = [meaning for sign, meaning in signs.items() if sign in matrices]
    return f"{'; '.join(said)}\n" if said else ""


def _system(compilation: Compilation, stage: str, form: str, gauge: str) -> str:
    """A system, or its adjoint, in one form and gauge."""
    system = compilation.computed if gauge == "computed" else compilation.system
    if gauge == "computed" and form not in ("index", "json"):
        raise click.UsageError(f"--form {form} goes with --gauge lowered or paper")
    if stage == "adjoint":
        from dsfc.transform.adjoint import adjoint

        system, _ = adjoint(system)
    if form in ("index", "json"):
        label = _GAUGES[gauge]
        if gauge == "paper":
            from dsfc.transform.gauge import eta_gauge

            lowered = system
            system, _ = eta_gauge(system)
            label = _SAME[gauge] if system == lowered else label
        elif gauge == "computed" and compilation.computed is compilation.system:
            label = _SAME[gauge]
        if form == "json":
            return _system_json(system)
        from dsfc.system.index_form import index_form

        text = f"{label}\n\n{index_form(system)}"
        if stage == "adjoint":
            return text
        more = (_kind(compilation, system), _modes(compilation), _series(system))
        return f"{text}\n{''.join(more)}{_claims(compilation)}"
    if form == "kronecker":
        from dsfc.matrices.kronecker_form import kronecker_form

        return kronecker_form(system, gauge)
    if form == "phi":
        from dsfc.matrices.convolution import convolution_form

        lines = () if stage == "adjoint" else _attention(compilation)
        return convolution_form(system, gauge, lines)
    from dsfc.matrices.latex import latex_form

    return latex_form(system, gauge)


def _attention(compilation: Compilation) -> tuple[str, ...]:
    """The matrices of softmax attention, where an output has some."""
    from dsfc.expr.text import text
    from dsfc.structure.attention_matrix import attention_matrix
    from dsfc.system.formulas import read_out_formula, states

    attentions, system = compilation.structure.attentions, compilation.system
    if not attentions:
        return ()
    lines = [line for attention in attentions for line in attention_matrix(attention)]
    blocks = states(system)
    formulas = (f"{o.name} = {text(read_out_formula(o.value, blocks))}" for o in system.outputs)
    return (*lines, "", *formulas)


def _kind(compilation: Compilation, system: System) -> str:
    """What kind of system it is: a property of the gauge, so another one is classified again."""
    from dsfc.structure.classify import classify
    from dsfc.structure.render import render

    return render(compilation.structure if system is compilation.system else classify(system))


def _modes(compilation: Compilation) -> str:
    """The ways in which its module runs; nothing where this version writes none."""
    from dsfc.diagnostics.report import DiagnosticError

    try:
        plan = compilation.plan
    except DiagnosticError:
        return ""
    names = [mode.name for mode in plan.modes if mode.legal]
    # A state handed from token to token knows nothing of the tokens to come.
    return f"\nmodes of its module: {', '.join([*names, *['step'] * plan.causal])}\n"


def _series(system: System) -> str:
    """What truncated series leave out."""
    from dsfc.structure.truncation import truncations

    cut = truncations(system)
    return f"\n{cut}" if cut else ""


def _claims(compilation: Compilation) -> str:
    """What is known of the claims."""
    if not compilation.mixer.claims:
        return ""
    from dsfc.api.decide import claims
    from dsfc.claims.report import report

    return f"\n{report(claims(compilation))}"


def _system_json(system: System) -> str:
    from dsfc.system.json import to_json

    return to_json(system)


def _text(compilation: Compilation, stage: str, backend: str | None) -> str:
    if stage == "fused":
        from dsfc.fused.render import render

        return render(compilation.fused(backend))
    text = _TEXTS[stage](compilation)
    if stage != "plan" or backend is None:
        return text
    return f"{text}{_calls(compilation, backend)}{_costs(compilation, backend)}"


def _json(compilation: Compilation, stage: str, backend: str | None) -> str:
    import json

    from dsfc.expr.json import encode

    value = (
        compilation.fused(backend)
        if stage == "fused"
        else getattr(compilation, "spec" if stage == "ast" else stage)
    )
    return json.dumps(encode(value), ensure_ascii=False, indent=1)


def _ast(compilation: Compilation) -> str:
    from dsfc.syntax.format import format_spec

    return format_spec(compilation.spec)


def _mixer(compilation: Compilation) -> str:
    from dsfc.mixer.render import render

    return render(compilation.mixer)


def _structure(compilation: Compilation) -> str:
    from dsfc.structure.render import render

    return render(compilation.structure)


def _plan(compilation: Compilation) -> str:
    from dsfc.plan.render import render

    return render(compilation.plan)


def _kernels(compilation: Compilation, backend: str) -> str:
    """The kernels of a backend that are of the kernel IR."""
    from dsfc.emit.backend import load_backend
    from dsfc.kernel_ir.render import render as kernel_text

    kernels = load_backend(backend).kernels(compilation.fused(backend))
    if not kernels:
        return f"The module of the {backend} backend has no kernel of the kernel IR.\n"
    return "\n".join(map(kernel_text, kernels))


def _calls(compilation: Compilation, backend: str) -> str:
    """Which calls run in kernels of a backend; nothing of one without kernels."""
    from dsfc.api.coverage import coverage

    lines: list[str] = []
    for covered in coverage(compilation, backend):
        lines += [f"calls on a {covered.device}"] if covered.device else []
        said: dict[str, list[str]] = {}
        for c in covered.calls if covered.device else ():
            reasons = "; ".join(f"{', '.join(r.scans)}: {r.why}".lstrip(": ") for r in c.reasons)
            text = f"{c.runs}, {reasons}" if reasons else f"{c.runs}"
            said.setdefault(text, []).append(c.call)
        lines += [f"  {', '.join(calls)}: {text}" for text, calls in said.items()]
    return "".join(f"{line}\n" for line in lines)


def _costs(compilation: Compilation, backend: str) -> str:
    """What operators or kernels of a backend cost, for one plan."""
    from dsfc.emit.backend import load_backend

    return load_backend(backend).costs(compilation.fused(backend))


_TEXTS: dict[str, Callable[[Compilation], str]] = {
    "ast": _ast,
    "mixer": _mixer,
    "structure": _structure,
    "plan": _plan,
}
