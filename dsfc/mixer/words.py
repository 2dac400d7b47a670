"""The words and signs of the language: what each means, a text that has it, and the page about it.

Editors and `dsfc explain` read this table. What primitives and distributions mean stands in their
own tables, from which their words are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dsfc.expr.declarations import FlowRule
from dsfc.expr.distributions import DISTRIBUTIONS, Distribution
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.statements import PredicateName
from dsfc.expr.table import SPELLINGS, TABLE, FieldRule, Primitive
from dsfc.mixer.reserved_names import FORMS

_OUTER = "outer product: the axes of both sides, which may share `heads` axes only"
_DOT = "contraction: the one shared axis that is not a `heads` axis disappears"
_UP_TO = "comparison: at most; `sum[j ≤ i](…)` sums over the past"
_DOWN_TO = "comparison: at least"

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "mixer": "a sequence mixer: its axes, inputs, parameters and definitions",
        "modifier": "definitions that mixers take in with `use`",
        "extends": "takes all of another mixer; what is defined again takes its place",
        "dims": "axes, each with a size or one that the caller of the module gives",
        "heads": "an axis that everything done per head shares: both sides of `⊗` may have it",
        "input": "a stream that the module takes",
        "param": "a trained tensor, or a linear map `d -> h`",
        "buffer": "a fixed tensor or linear map",
        "state": "a value that goes on from token to token; `S[i-1]` is the one before",
        "abstract": "a function of which nothing is known",
        "each": "one linear map for each entry of an axis, `each h : d -> n`",
        "const": "a number",
        "by": "how a flow `x' = …` becomes a recurrence: `zoh`, `bilinear` or `euler` of a step",
        "use": "applies a modifier to definitions",
        "on": "what a modifier is used on",
        "claim": "what `dsfc check` proves or refutes",
        "paper": "a paper that the mixer is of, and the letters it has for names",
        "layer": "norm and gate of the layer that `dsfc compile --layer` writes around the mixer",
        "when": "conditions of a claim",
        "and": "one condition more",
        "for": "the earlier tokens for which a condition holds",
        "complex": "complex values",
        "positive": "values above 0",
        "nonneg": "values that are 0 or above",
        "unit": "values above 0 and below 1",
        "nonzero": "values that are not 0",
        "backward": "a state that runs from the end of the sequence to its start",
        "+": "sum of values with equal axes; a value without axes may be added to any",
        "-": "difference of values with equal axes, or the negative of a value",
        "*": "elementwise product: one side has all axes of the other. In a shape, `×`",
        "/": "elementwise quotient: one side has all axes of the other",
        "^": "power; binds tighter than a sign, and `a^b^c` is `a^(b^c)`",
        "⊗": f"{_OUTER}. In ASCII `(*)`",
        "(*)": f"{_OUTER}. Also written `⊗`",
        "·": f"{_DOT}. In ASCII `.`",
        ".": f"{_DOT}. Also written `·`",
        "×": "both axes of a shape, in any order. In ASCII `*`",
        "->": "a linear map from the axes before to the axes behind",
        "'": "a flow: the derivative of a state in time",
        "=": "a definition; behind a declaration, the first value",
        "~": "how the first values are drawn",
        "==": "comparison: equal",
        "!=": "comparison: not equal",
        "<": "comparison: below; `prod[j < l ≤ i](…)` multiplies over a stretch of tokens",
        ">": "comparison: above",
        "≤": f"{_UP_TO}. In ASCII `<=`",
        "<=": f"{_UP_TO}. Also written `≤`",
        "≥": f"{_DOWN_TO}. In ASCII `>=`",
        ">=": f"{_DOWN_TO}. Also written `≥`",
    }
)
"""Keyword or operator, as it is written, and what it means."""

_NAMES = {TIME: "the present token", FIRST: "1 at the first token of a sequence, else 0"}
_RULES = {
    FlowRule.ZOH.value: "exact for inputs that stay constant over a step Δ, `zoh(Δ)`",
    FlowRule.EULER.value: "exact decay and an Euler step Δ of the input, `euler(Δ)`",
    FlowRule.BILINEAR.value: "the bilinear rule (Tustin's) with step Δ, `bilinear(Δ)`",
}
_PREDICATES = {
    PredicateName.STABLE.value: "claim: no transition lengthens a state, ‖Λ_i‖ ≤ 1 at every token",
    PredicateName.CAUSAL.value: "claim: outputs depend on their own token and earlier ones",
    PredicateName.TIME_INVARIANT.value: "claim: Λ, B, C and D are the same at every token",
    PredicateName.ROW_STOCHASTIC.value: "claim: every output is a convex combination of the values "
    "`v` seen so far, or of `x` in `row_stochastic(x)`",
    PredicateName.FINITE.value: "claim: every sum over the past has a finite state",
    PredicateName.CLASS.value: "claim: the mixer is of a structure class, `class scalar`",
    PredicateName.EQUIVALENT.value: "claim: the same function as another mixer, `equivalent gla`",
}


@dataclass(frozen=True, slots=True)
class Word:
    """A word or sign of the language.

    Attributes:
        name: as specs write it.
        kind: what it is, such as "keyword" or "function".
        meaning: what it means, in one line.
        calls: the ways to call it, such as `fir[t](w, x)`; empty for what is not called.
        notes: what else to know, each a sentence.
        example: a spec that has it and no mistake.
        page: the page about it, below `docs/` and without its ending.
    """

    name: str
    kind: str
    meaning: str
    calls: tuple[str, ...]
    notes: tuple[str, ...]
    example: str
    page: str


def _mixer(*items: str, dims: str = "d", u: str = "d") -> str:
    """A mixer of some items behind its axes and its input."""
    body = "".join(f"  {item}\n" for item in (f"dims {dims}", f"input u : {u}", *items))
    return f"mixer m {{\n{body}}}\n"


_DOUBLE = _mixer("y = 2 * u")
_DECAY = ("state S : d", "S = 1/2 * S[i-1] + u", "y = S")
_HEADS = "d, heads h = 4, n = d / h, p = d / h"
_MAPS = ("param W_K : d -> h × n", "param W_V : d -> h × p")
_MODIFIER = """modifier doubled on x {
  x = 2 * x
}
mixer m extends normalized_attn {
  use doubled on y
}
"""
_ORTHOGONAL = """mixer m extends deltanet {
  S = S[i-1] + (β * k) ⊗ v
}
mixer orthogonal extends deltanet {
  claim equivalent m when k · k[j] == 0 for j < i
}
"""


def _flow(rule: str) -> str:
    return _mixer("param a : d positive", "state x : d", f"x' = u - a * x by {rule}(1)", "y = x")


def _flagged(flag: str, *items: str) -> str:
    return _mixer(f"param a : d {flag}", *items)


def _claimed(claim: str) -> str:
    return _mixer("param a : d unit", *(s.replace("1/2", "a") for s in _DECAY), f"claim {claim}")


_EXAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mixer": ("language/index", _DOUBLE),
        "modifier": ("language/modifiers", _MODIFIER),
        "extends": (
            "language/reuse",
            "mixer m extends normalized_attn {\n  η = softplus(w_η u + b_η)\n}\n",
        ),
        "dims": ("language/shapes", _DOUBLE),
        "heads": ("language/shapes", _mixer(*_MAPS, "y = W_K u ⊗ W_V u", dims=_HEADS)),
        "input": ("language/parameters", _DOUBLE),
        "param": ("language/parameters", _mixer("param W : d -> d", "y = W u")),
        "buffer": ("language/parameters", _mixer("buffer a : d = 1/2", "y = a * u")),
        "state": ("language/recurrence", _mixer(*_DECAY)),
        "abstract": ("language/parameters", _mixer("abstract φ : d -> r", "y = φ(u)", dims="d, r")),
        "each": (
            "language/parameters",
            _mixer("param W : each b : c -> c", "y = W u", dims="b = 4, c", u="b × c"),
        ),
        "const": ("language/parameters", _mixer("const α = 1/2", "y = α * u")),
        "by": ("language/continuous", _flow("zoh")),
        "use": ("language/modifiers", _MODIFIER),
        "on": ("language/modifiers", _MODIFIER),
        "claim": ("language/claims", _claimed("stable")),
        "paper": (
            "language/papers",
            _mixer(
                'paper "Vaswani et al.", 2017, "Attention", arXiv "1706.03762", letters u "x"',
                "y = u",
            ),
        ),
        "layer": ("language/papers", _mixer("layer norm rms, gate silu", "y = u")),
        "when": ("language/claims", _mixer("claim u^3 > 0 when u > 0", "y = u")),
        "and": ("language/claims", _mixer("claim u^3 < 1 when u > 0 and u < 1", "y = u")),
        "for": ("language/claims", _ORTHOGONAL),
        "complex": (
            "language/parameters",
            _flagged("complex ~ cplx(0, normal(0, 1))", "y = Re(a * u)"),
        ),
        "positive": ("language/parameters", _flagged("positive", "y = log(a) * u")),
        "nonneg": ("language/parameters", _flagged("nonneg", "y = sqrt(a) * u")),
        "unit": ("language/parameters", _claimed("stable")),
        "nonzero": ("language/parameters", _flagged("nonzero", "y = u / a")),
        "backward": (
            "language/recurrence",
            _mixer("state S : d backward", "S = 1/2 * S[i+1] + u", "y = S"),
        ),
        "+": ("language/shapes", _mixer("y = u + 1")),
        "-": ("language/shapes", _mixer("y = u - 1")),
        "*": ("language/shapes", _DOUBLE),
        "/": ("language/shapes", _mixer("y = u / 2")),
        "^": ("language/shapes", _mixer("y = u^2")),
        "⊗": ("language/shapes", _mixer("y = u ⊗ ones[n]", dims="d, n = 2")),
        "(*)": ("language/shapes", _mixer("y = u (*) ones[n]", dims="d, n = 2")),
        "·": ("language/shapes", _mixer("y = u · ones[d]")),
        ".": ("language/shapes", _mixer("y = u . ones[d]")),
        "×": ("language/shapes", _mixer("y = sum[n](u)", dims="d, n", u="d × n")),
        "->": ("language/parameters", _mixer("param W : d -> d", "y = W u")),
        "'": ("language/continuous", _flow("zoh")),
        "=": ("language/parameters", _mixer("param a : d = 1", "y = a * u")),
        "~": ("language/parameters", _mixer("param a : d ~ normal(0, 1)", "y = a * u")),
        "==": ("language/claims", _mixer("claim u * u == u^2", "y = u")),
        "!=": ("language/claims", _mixer("claim exp(u) != 0", "y = u")),
        "<": ("language/claims", _mixer("claim sigmoid(u) < 1", "y = u")),
        ">": ("language/claims", _mixer("claim exp(u) > 0", "y = u")),
        "≤": ("language/attention", _mixer("y = sum[j ≤ i](u[j])")),
        "<=": ("language/attention", _mixer("y = sum[j <= i](u[j])")),
        "≥": ("language/claims", _mixer("claim u^2 ≥ 0", "y = u")),
        ">=": ("language/claims", _mixer("claim u^2 >= 0", "y = u")),
        "sum": ("language/attention", _mixer("y = sum[j ≤ i](u[j]) / sum[d](exp(u))")),
        "mean": ("language/shapes", _mixer("y = u - mean[d](u)")),
        "prod": (
            "language/attention",
            _mixer("a = sigmoid(u)", "y = sum[j ≤ i](prod[j < l ≤ i](a[l]) * u[j])"),
        ),
        "fir": (
            "language/shapes",
            _mixer("param w : d × t ~ normal(0, 1)", "y = fir[t](w, u)", dims="d, t = 4"),
        ),
        "taylor": (
            "language/powers",
            "mixer m extends qkv {\n  y = sum[j ≤ i](taylor[2](q · k[j]) * v[j])\n}\n",
        ),
        "rename": (
            "language/shapes",
            _mixer("y = u ⊗ rename[d, e](u)", dims="d, e = d"),
        ),
        "ones": ("language/shapes", _mixer("y = u ⊗ ones[n]", dims="d, n = 2")),
        "iota": ("language/shapes", _mixer("buffer a : d = iota[d]", "y = a * u")),
        TIME: ("language/names", _mixer("y = u - u[i-1]")),
        FIRST: ("language/shapes", _mixer("y = first * u")),
        "zoh": ("language/continuous", _flow("zoh")),
        "euler": ("language/continuous", _flow("euler")),
        "bilinear": ("language/continuous", _flow("bilinear")),
        "stable": ("language/claims", _claimed("stable")),
        "causal": ("language/claims", _claimed("causal")),
        "time_invariant": ("language/claims", _claimed("time_invariant")),
        "row_stochastic": (
            "language/claims",
            "mixer m extends softmax {\n  claim row_stochastic\n}\n",
        ),
        "finite": ("language/claims", _claimed("finite")),
        "class": ("language/claims", "mixer m extends gla {\n  claim class per_key\n}\n"),
        "equivalent": ("language/claims", "mixer m extends gla {\n  claim equivalent gla\n}\n"),
    }
)  # fmt: skip
"""Word, the page about it, and a spec with it; of functions and distributions both are made."""

_CALL = re.compile(r"`(\w+[\[(][^`]*)`")
"""A call in a meaning."""
_ARGUMENTS = ("", "x", "a, b")
"""What functions of so many arguments take, as their meanings call it."""


def _words() -> Iterator[Word]:
    for name, meaning in MEANINGS.items():
        page, example = _EXAMPLES[name]
        kind = "keyword" if name.isalpha() else "sign"
        yield Word(name, kind, meaning, (), (), example, page)
    said = {"form": FORMS, "name": _NAMES, "rule of discretisation": _RULES,
            "predicate": _PREDICATES}  # fmt: skip
    for kind, meanings in said.items():
        for name, meaning in meanings.items():
            page, example = _EXAMPLES[name]
            calls = tuple(_CALL.findall(meaning))
            yield Word(name, kind, meaning, calls, (), example, page)
    for spelling, key in SPELLINGS.items():
        yield _function(spelling, TABLE[key])
    for row in DISTRIBUTIONS.values():
        yield _distribution(row)


def _function(name: str, row: Primitive) -> Word:
    brackets = "[n]" if row.along_axis else ""
    calls = (f"{name}{brackets}({_ARGUMENTS[row.arity]})",) if row.arity else ()
    called = (
        f"{name}{brackets.replace('n', 'd')}({('', 'u', 'u, 1')[row.arity]})" if calls else name
    )
    is_complex = row.fields is FieldRule.COMPLEX
    example = _mixer(f"y = Re({called})" if is_complex else f"y = {called} * u")
    notes = (row.fields.value, *([row.caveat] if row.caveat else ()))
    return Word(name, "function", row.meaning, calls, notes, example, "reference/primitives")


def _distribution(row: Distribution) -> Word:
    drawn = row.sequence is None
    calls = (f"{row.name}{'' if drawn else '[n]'}({_ARGUMENTS[row.arity]})",)
    values = ("", "1", "1, 2")[row.arity] if drawn else "d"
    shape = "d -> d" if row.name == "orthogonal_chi" else "d"
    used = "W u" if row.name == "orthogonal_chi" else "W * u"
    called = f"{row.name}{'' if drawn else '[d]'}({values})"
    example = _mixer(f"param W : {shape} ~ {called}", f"y = {used}")
    kind = "distribution" if drawn else "sequence"
    return Word(row.name, kind, row.meaning, calls, (), example, "language/parameters")


WORDS: Mapping[str, Word] = MappingProxyType({word.name: word for word in _words()})
"""Every word and sign of the language by its name."""
