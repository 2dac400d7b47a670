"""Named lemmas: what follows of a mixer whose claims are proved.

A lemma is proved on its page by a person, once, and says something that no procedure here finds. Of
a mixer it asks hypotheses; each is a claim of the language, which the mixer's spec states and
`decide` decides, or is read off the system. A lemma applies where all are proved; what it asks of
inputs alone stays in what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dsfc.claims.feeding import coefficients_of, driven_by
from dsfc.claims.verdict import Decided, Proved
from dsfc.expr.build import walk
from dsfc.expr.over_time import Past
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Expr, Now, Ref
from dsfc.system.inline import inliner_of
from dsfc.system.ir import Cache, Post, Product, Ratio, System
from dsfc.system.traverse import parts, trees


@dataclass(frozen=True, slots=True)
class Lemma:
    """A statement about every mixer with some properties.

    Attributes:
        name: how the collection of theorems calls it.
        title: what it is about.
        page: its page, in `docs/theory/lemmas`.
        roles: names in the hypotheses that a mixer gives names of its own.
        claims: hypotheses as claims; roles stand in braces.
        structural: hypotheses that are read off a system: each gives what stands in the way.
        says: the conclusion, with what is asked of inputs.
    """

    name: str
    title: str
    page: str
    roles: tuple[str, ...]
    claims: tuple[str, ...]
    structural: tuple[Callable[[System], str | None], ...]
    says: str


@dataclass(frozen=True, slots=True)
class Applies:
    """All hypotheses are proved.

    Attributes:
        says: the conclusion, in the mixer's names.
        by: (hypothesis, what shows it).
    """

    says: str
    by: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Open:
    """A hypothesis is not proved.

    Attributes:
        missing: the hypotheses that are not, with what stands in the way.
    """

    missing: tuple[str, ...]


def apply(
    lemma: Lemma, system: System, decided: tuple[Decided, ...], names: Mapping[str, str]
) -> Applies | Open:
    """Returns what a lemma says of a mixer, or which hypotheses are missing.

    Args:
        lemma: the lemma.
        system: the mixer's.
        decided: the mixer's claims, decided; those with conditions show nothing here.
        names: role → name in the mixer.

    Raises:
        ValueError: the names are not those of the roles.
    """
    if names.keys() != set(lemma.roles):
        raise ValueError(f"the roles of {lemma.name} are {', '.join(lemma.roles) or 'none'}")
    known = {_plain(d.statement.text): d.verdict for d in decided if not d.statement.when}
    by, missing = list[tuple[str, str]](), list[str]()
    for template in lemma.claims:
        text = template.format(**names)
        verdict = known.get(_plain(text))
        if isinstance(verdict, Proved):
            by.append((text, verdict.by))
        else:
            missing.append(f"{text}: {'not claimed' if verdict is None else 'not proved'}")
    for check in lemma.structural:
        obstacle = check(system)
        what = (check.__doc__ or "").splitlines()[0].rstrip(".")
        if obstacle is None:
            by.append((what, "the structure of the system"))
        else:
            missing.append(f"{what}: {obstacle}")
    return Open(tuple(missing)) if missing else Applies(lemma.says.format(**names), tuple(by))


def _plain(text: str) -> str:
    return "".join(text.split()).replace("<=", "≤").replace(">=", "≥")


def token_local(system: System) -> str | None:
    """Λ, B, C and D are functions of their own token."""
    inline = inliner_of(system)
    for e in _coefficients(system):
        for part in walk(inline.of(e)):
            match part:
                case Past():
                    return "a coefficient is a sum over the past"
                case Ref(name=name, at=Now(lag)) if lag or name == FIRST:
                    return f"a coefficient reads `{name}` at another token"
                case Ref(name=name) if name not in {t.name for t in system.inputs}:
                    return f"a coefficient reads `{name}`"
    if any(isinstance(part, Cache) for tree in trees(system) for part in parts(tree)):
        return "a sum over the past has no finite state"
    return None


def diagonal(system: System) -> str | None:
    """Every state runs forward with a diagonal Λ of its own, and y is linear in the states."""
    for stage in system.stages:
        if stage.direction < 0:
            return "a state runs backwards"
        for block in stage.blocks:
            terms = [t for factor in block.chain for t in factor.terms]
            own = all(t.source == block.state and not t.over for t in terms)
            mapped = any(t.matrix is not None or t.after is not None for t in terms)
            if len(block.chain) != 1 or len(terms) != 1 or not own or mapped:
                return f"Λ of `{block.state}` is not"
    for state, others in driven_by(system).items():
        if others:
            return f"`{state}` is driven by `{min(others)}`"
    for tree in trees(system):
        for part in parts(tree):
            if isinstance(part, Ratio | Product | Post | Cache):
                return "y is not"
    return None


def _coefficients(system: System) -> Iterator[Expr]:
    """What multiplies states and what is added to them, in updates and read-outs."""
    for block in system.blocks:
        for factor in block.chain:
            for t in factor.terms:
                yield from (t.left, t.right)
            for d in factor.drives:
                yield from (d.key, d.stream)
    for tree in trees(system):
        yield from coefficients_of(tree)


LEMMAS = {
    lemma.name: lemma
    for lemma in (
        Lemma(
            "T4", "rows of attention are convex combinations", "convex_hull",
            ("φ", "ψ"), ("{φ} >= 0", "{ψ} >= 0"), (),
            "where η_i = Σ_(j ≤ i) {φ}_i · {ψ}_j is not 0, (1 / η_i) Σ_(j ≤ i) ({φ}_i · {ψ}_j) v_j "
            "lies in the convex hull of v_0 … v_i",
        ),
        Lemma(
            "T6", "softmax needs infinitely many features", "softmax_rank",
            (), (), (),
            "a score φ(x) · ψ(y) of n features is not e^(x · y) on any open set, whatever φ, ψ "
            "and n are",
        ),
        Lemma(
            "T7", "truncated exponentials and random features", "taylor_limit",
            ("s", "R"), ("-{R} <= {s} <= {R}",), (),
            "|e^{s} - Σ_(r ≤ P) {s}^r / r!| ≤ {R}^(P+1) e^{R} / (P+1)! for every order P",
        ),
        Lemma(
            "T17", "every causal convolution of length L is a diagonal mixer of size L",
            "universal_on_length", (), ("time_invariant", "causal"), (),
            "on sequences of length L each scalar input-output pair is a diagonal mixer of size L "
            "with λ_n = e^(2πi n / L), its weights the Fourier coefficients of the kernel",
        ),
        Lemma(
            "T32", "recency", "recency",
            ("S", "a"), ("abs(decay({S})) <= {a}", "0 <= {a} < 1"), (token_local, diagonal),
            "on a compact set of tokens |∂y_t / ∂u_s| ≤ C {a}^(t-s) for t > s, with the constant "
            "of the page",
        ),
        Lemma(
            "T33", "over-smoothing", "over_smoothing",
            ("A", "Δ"), ("0 <= {A} <= 1", "{Δ} >= 0", "{A} + {Δ} <= 1"), (),
            "for h = {A} h[i-1] + {Δ} b with min_t b_n ≤ 0 ≤ max_t b_n in every channel n, "
            "max |h_t - h_s|_1 ≤ (1 - min {A}^(T-1)) Σ_n (max_t b_n - min_t b_n)",
        ),
        Lemma(
            "T34", "kernels that are not negative are low-pass", "low_pass",
            ("S", "b", "c"),
            ("time_invariant", "decay({S}) >= 0", "{b} >= 0", "{c} >= 0"), (diagonal,),
            "the kernel K_j = Σ_n {c}_n decay({S})_n^j {b}_n has |H(e^(iθ))| ≤ H(1) for all θ, "
            "where H(1) = Σ_j K_j exists",
        ),
    )
}  # fmt: skip
"""The lemmas by name."""
