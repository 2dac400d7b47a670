"""Features of a matrix scan: query, key, weight and normaliser, in torch and in kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dsfc.expr.build import is_one, mul, rewrite, walk
from dsfc.expr.tree import Expr, Field, Now, Ref, Size, Time
from dsfc.fused.ir import FEATURE_BAR, Entrywise, PrologueEpilogue

from ..torch.code import Code
from ..torch.matrix import MatrixSkeleton
from .behind import Behind
from .gated import GatedKernels, arguments
from .nodes import KernelPrinter
from .statements import NamingPrinter, Statements, statements

_WORDS = frozenset(
    "q k v w g S lengths o do dS mode chunk dtype counts scale B L H C K V T W".split()
)
_WORDS |= frozenset(
    "grid tokens options parts given more x self ctx math triton torch F tl".split()
)
_WORDS |= frozenset("dq dk dv dg grads out last sizes programs pull gated weight eta".split())
_WORDS |= frozenset("n_k by_keys by_columns sums ahead rest".split())
_WORDS |= frozenset("read key n d_weight d_eta do_o o_w do_w dv_w dw dweight deta".split())
"""Words that the operators' functions and the kernels use themselves."""


@dataclass(frozen=True)
class MatrixFeatures(GatedKernels, MatrixSkeleton):
    """A matrix scan, and what is computed of its arguments besides the recurrence.

    Attributes:
        features: what the kernels compute besides the recurrence.
    """

    features: PrologueEpilogue = field(kw_only=True)

    @property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the numbers."""
        return ["q", "k", "v", "w"] if self.narrow else ["q", "k", "v"]

    @property
    def scaled(self) -> bool:
        """Whether a normaliser divides the output."""
        return self.features.normaliser is not None

    @property
    def running(self) -> bool:
        """Whether that is computed of what is read of the column of one channel."""
        return self.features.running

    @property
    def behind(self) -> Behind:
        """Statements of the torch form behind the plain scan: a division by a normaliser."""
        if self.running:
            return Behind(
                output=f"*_divided{self.suffix}(o, lengths)",
                finished_plainly=(f"o, _ = _divided{self.suffix}(o, lengths)",),
                output_of_plain="o",
                undone=(f"do = _undivided{self.suffix}(o, o_w, do, lengths)",),
            )
        if self.scaled:
            scaled = "(o * scale).to(o.dtype)"
            undone = "do_o = (do * o.to(scale.dtype)).sum(-1)", "do = (do * scale).to(do.dtype)"
            return Behind(
                apart="scale",
                undone_by="scale",
                output=scaled,
                output_of_plain=scaled,
                undone=undone,
                pulled=("do_o",),
            )
        return super().behind

    @cached_property
    def _arguments(self) -> dict[str, str]:
        """Leaf of weight or normaliser → argument."""
        f = self.features
        of_column = dict.fromkeys(f.normaliser.leaves, "o_w") if f.running and f.normaliser else {}
        return arguments(f.numbers, _WORDS) | of_column

    @property
    def numbers(self) -> list[str]:
        """Arguments of one number a token and head, besides log λ."""
        return [self._arguments[n] for n in self.features.numbers]

    @property
    def inputs(self) -> list[str]:
        """All arguments but the state."""
        return [*self.tokens, *self.numbers, *self.decays]

    @property
    def weighted(self) -> bool:
        """Whether values have a weight."""
        return self.features.weight is not None

    @property
    def factor(self) -> str:
        """Text of the constant factor of the output; empty for 1."""
        return "" if is_one(self.features.factor) else self._text(self.features.factor, {"": "K"})

    def scale(self, index: str) -> str:
        """Text of the scale of the output: a normaliser's, or the constant factor; empty for 1.

        Args:
            index: `[:, None]` for rows, `[None, :]` for columns, empty for tokens.
        """
        return f"b_scale{index}" if self.scaled else self.factor

    @property
    def narrow(self) -> bool:
        """Whether a column of one channel stands behind those of all channels."""
        *ahead, last = self.scan.columns
        return bool(ahead) and not last.channels and all(c.channels for c in ahead)

    # --- the torch form of the features ----------------------------------------------------------

    @property
    def gates_meaning(self) -> str:
        """Docstring of the features' torch form."""
        what = "Query, key, value" + (", log λ" if self.decay else "")
        more = "; the output's factor" if self.scaled else ""
        return f'"""{what}{more}. A token that does not count has no key."""'

    @property
    def widened(self) -> list[str]:
        """Arguments that are computed with, not passed on."""
        f = self.features
        scaled = self.scaled and not self.running
        read = [] if f.read.plain and (scaled or is_one(f.factor)) else ["q"]
        return [*read, *([] if f.key.plain else ["k"]), *self.numbers]

    @cached_property
    def _in_torch(self) -> dict[str, tuple[Statements, Statements]]:
        """In torch, by variable: each value that is computed, and the gradients of its leaves."""
        f, out = self.features, {}
        read = f.read
        if (self.running or not self.scaled) and not is_one(f.factor):
            # The factor of the output scales the queries, unless a normaliser divides the output
            # that is not computed from what the queries read.
            bar = Ref(FEATURE_BAR, read.value.axes, Field.REAL, Time.TOKEN, Now(0))
            times: dict[Expr, Expr] = {bar: mul(f.factor, bar)}
            back = tuple(rewrite(e, times.get) for e in read.gradients)
            read = replace(read, value=mul(f.factor, read.value), gradients=back)
        for name, x, feature in (("read", "q", read), ("key", "k", f.key)):
            if not feature.plain:
                of = dict.fromkeys(feature.leaves, x)
                out[name] = self._printed(name, feature, of | {FEATURE_BAR: f"d{x}"})
        for name, number in (("weight", f.weight), ("eta", f.normaliser)):
            if number is not None:
                of = self._arguments | {FEATURE_BAR: f"d_{name}"}
                # A running one has an operator's functions of its own: see `normaliser_lines`.
                out[name] = self._printed(name, number, of)
        return out

    def _printed(
        self, name: str, feature: Entrywise, of: Mapping[str, str]
    ) -> tuple[Statements, Statements]:
        """Statements that compute a value in torch, and the gradients of its leaves."""
        axes = tuple(sorted(feature.value.axes))
        sizes = {a.name: "n" for a in self.scan.keys}
        printer = NamingPrinter(lambda r: Code(of[r.name], axes, True), sizes, "v")
        used = {*self.leaves, *_WORDS}

        def variable(asked: str) -> str:
            made = f"{name}_{asked}"
            return f"{made}_" if made in used else made

        wanted, later = [(name, feature.value)], feature.gradients
        made = statements(wanted, [], printer, variable, "    ", later, used)
        (result,) = made.results
        if result != name:
            made = Statements((*made.lines, f"    {name} = {result}"), (name,))
        d = "d" if name in ("read", "key") else "d_"
        targets = [f"{d}{of[n]}" for n in feature.leaves]
        pairs = list(zip(targets, later, strict=True))
        return made, statements(pairs, [], printer, variable, " " * 8, (), used)

    @property
    def torch_gates(self) -> Statements:
        """The features, in torch."""
        f = self.features
        sized = [f.read.value, f.key.value, f.factor]
        lines = []
        if any(isinstance(e, Size) for each in sized for e in walk(each)):
            lines.append("    n = q.shape[-1]")
        lines += [line for made, _ in self._before.values() for line in made.lines]
        return Statements(tuple(lines), tuple(self.gated_results))

    @property
    def _before(self) -> dict[str, tuple[Statements, Statements]]:
        """Statements of the features that run ahead of the scan, by variable."""
        return {n: x for n, x in self._in_torch.items() if n != "eta" or not self.running}

    @property
    def normaliser_lines(self) -> tuple[list[str], list[str], str]:
        """Statements of a running normaliser; those of the gradient of its column, and that."""
        made, back = self._in_torch["eta"]
        (result,) = back.results
        return list(made.lines), [line[4:] for line in back.lines], result

    @property
    def gated_results(self) -> list[str]:
        """Texts of the results of the features' torch form: the arguments of the plain scan."""
        names = self._in_torch
        q = "read.to(dtype)" if "read" in names else "q.to(dtype)" if "q" in self.widened else "q"
        k = "_kept(key, counts).to(dtype)" if "key" in names else "_kept(k, counts)"
        v = "torch.cat((v, w.to(v.dtype)), -1)" if self.narrow else "v"
        v = f"({v} * weight[..., None]).to(dtype)" if self.weighted else v
        results = [q, k, v, *(["_kept(g, counts)"] if self.decay else [])]
        scale = f"({self._text(self.features.factor, {'n': 'n'})} / eta)[..., None]"
        return [*results, *([scale] if self.scaled and not self.running else [])]

    @property
    def pulled(self) -> list[str]:
        """Arguments of the features' gradient: those of the plain scan's, and of a normaliser."""
        decay = ["dg"] if self.decay else []
        scale = ["do_o"] if self.scaled and not self.running else []
        return ["dq", "dk", "dv", *decay, *scale]

    @property
    def pull_lines(self) -> list[str]:
        """Statements of the features' gradient."""
        indent, names = " " * 8, self._before
        wide = [d for d, name in (("dq", "read"), ("dk", "key"), ("dv", "weight")) if name in names]
        lines = self.taken(wide, ["dk", *(["dg"] if self.decay else [])])
        if self.weighted:
            of = "torch.cat((v, w.to(v.dtype)), -1)" if self.narrow else "v"
            lines.append(f"{indent}d_weight = (dv * {of}).sum(-1)")
        if self.scaled and not self.running:
            lines.append(f"{indent}d_eta = -do_o / eta  # the output has the factor 1 / eta")
        return [*lines, *(line for _, back in names.values() for line in back.lines)]

    @property
    def pulled_results(self) -> list[str]:
        """Gradients of all arguments but the state."""
        names = self._before
        back = {name: made.results for name, (_, made) in names.items()}
        q = f"{back['read'][0]}.to(dtype)" if "read" in names else "dq"
        k = f"{back['key'][0]}.to(dtype)" if "key" in names else "dk"
        v = "(dv * weight[..., None]).to(dtype)" if self.weighted else "dv"
        v = f"*_parts({v})" if self.narrow else v
        numbers = [*back.get("weight", ()), *back.get("eta", ())]
        return [q, k, v, *numbers, *(["dg"] if self.decay else [])]

    # --- the features in kernels -----------------------------------------------------------------

    def feature(self, x: str) -> Entrywise:
        """φ of "q", ψ of "k"."""
        return self.features.read if x == "q" else self.features.key

    def _variable(self, name: str) -> str:
        return f"b_{name}"

    def _lines(self, name: str, value: Expr, of: Mapping[str, str]) -> list[str]:
        """Statements of a kernel's loop that compute a value."""
        printer = KernelPrinter(of.__getitem__, {a.name: "K" for a in self.scan.keys})
        wanted, read = [(name, value)], [self._variable(x) for x in self.numbers]
        return list(statements(wanted, [], printer, self._variable, " " * 8, (), read).lines)

    def _text(self, number: Expr, sizes: Mapping[str, str]) -> str:
        """A number over sizes."""
        names = {a.name: text for a in self.scan.keys for text in sizes.values()}
        return KernelPrinter(str, names).print(number).text

    def rows(self, x: str) -> list[str]:
        """Statements that compute what products take of queries or keys in memory."""
        f = self.feature(x)
        lines = self._lines(f"r_{x}", f.value, {f.leaves[0]: f"x_{x}"})
        return [*lines, f"        r_{x} = _rounded(r_{x}, o_k, K, p_{x}.dtype.element_ty)"]

    def rows_back(self, x: str) -> list[str]:
        """Statements that compute the gradient of queries or keys in memory."""
        f = self.feature(x)
        return self._lines(
            f"x_d{x}", f.gradients[0], {f.leaves[0]: f"x_{x}", FEATURE_BAR: f"r_d{x}"}
        )

    def _number(self, what: str) -> Entrywise | None:
        return self.features.weight if what == "weight" else self.features.normaliser

    def leaves_of(self, what: str) -> list[str]:
        """Arguments that the weight, or the normaliser "eta", is computed of."""
        f = self._number(what)
        return [] if f is None else [self._arguments[n] for n in f.leaves]

    def number(self, what: str) -> list[str]:
        """Statements that compute the weight or the normaliser of each token."""
        f = self._number(what)
        assert f is not None
        of = {n: f"b_{self._arguments[n]}" for n in f.leaves}
        if f.plain:
            return [f"        b_{what} = {of[f.leaves[0]]}"]
        return self._lines(f"b_{what}", f.value, of)

    def column_back(self) -> list[str]:
        """Statements that compute the gradient of what a running normaliser is computed of."""
        f = self.features.normaliser
        assert f is not None
        of = {n: f"b_{self._arguments[n]}" for n in f.leaves} | {FEATURE_BAR: "b_deta"}
        return self._lines("b_dw", f.gradients[0], of) or ["        b_dw = b_deta"]

    def number_back(self, what: str) -> list[tuple[str, list[str]]]:
        """Arguments it is computed of, and statements that compute their gradients."""
        f = self._number(what)
        assert f is not None
        of = {n: f"b_{self._arguments[n]}" for n in f.leaves} | {FEATURE_BAR: f"b_d{what}"}
        out = []
        for leaf, gradient in zip(f.leaves, f.gradients, strict=True):
            name = f"db_{self._arguments[leaf]}"
            lines = self._lines(name, gradient, of) or [f"        {name} = b_d{what}"]
            out.append((self._arguments[leaf], lines))
        return out

    @property
    def code(self) -> list[str]:
        """Statements that the kernels print from expressions."""
        out = []
        for x in ("q", "k"):
            out += [] if self.feature(x).plain else [*self.rows(x), *self.rows_back(x)]
        for what in ("weight", "eta"):
            if self._number(what) is not None:
                out += [*self.number(what), *(t for _, ts in self.number_back(what) for t in ts)]
        out += self.column_back() if self.running else []
        return out
