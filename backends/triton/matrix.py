"""The matrix form: products of matrices inside a chunk, the state carried in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dsfc.expr.build import is_one, mul, rewrite, walk
from dsfc.expr.tree import Expr, Field, Now, Param, Ref, Size, Time
from dsfc.fused.ir import FEATURE_BAR, Entrywise, PrologueEpilogue
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import Scan
from dsfc.plan.sizes import CHUNK

from ..torch.code import Code
from ..torch.layout import Call, wrapped
from ..torch.matrix import MatrixSkeleton
from ..torch.skeletons import Skeleton
from .cost.counts import TILE, WIDTH, KernelCost
from .cost.scans import kernel_costs
from .gated import GatedKernels, arguments
from .nodes import KernelPrinter
from .statements import NamingPrinter, Statements, statements

_SIZES = {
    "forward": "H K V C BK BV",
    "forward_summary": "H K V C BK BV",
    "backward_read": "H K V C BK BV K_ALL V_ALL SPAN",
    "backward_keys": "H K V C BK V_ALL SPAN",
    "backward_columns": "H K V C BV K_ALL",
    "backward": "H K V C BK BV K_ALL V_ALL SPAN",
}
_PLACES = {"backward_keys": ["i_p", "i_k"], "backward_columns": ["i_p", "i_v"]}
"""Parts of kernels, and where in a row and head they are."""

_WORDS = frozenset(
    "q k v w g S lengths o do dS mode chunk dtype counts scale B L H C K V T W".split()
)
_WORDS |= frozenset(
    "grid tokens options parts given more x self ctx math triton torch F tl".split()
)
_WORDS |= frozenset("dq dk dv dg grads out last sizes programs pull gated weight eta".split())
_WORDS |= frozenset("read key n d_weight d_eta do_o o_w do_w dv_w dw dweight deta".split())
"""Words that the operators' functions and the kernels use themselves."""


@dataclass(frozen=True)
class MatrixKernels(GatedKernels, MatrixSkeleton):
    """A matrix scan whose operators take what its features are computed of.

    Arguments are query and key `[B, L, h, n]`, value `[B, L, h, p]`, the leaves of weight and
    normaliser and log λ, each `[B, L, h]`, and the state. A column of one channel (a denominator's)
    behind the others would spoil the alignment of their rows: its value and output `[B, L, h, 1]`
    stand apart, and every program has it besides its own columns.

    Attributes:
        features: what the kernels compute besides the recurrence.
    """

    features: PrologueEpilogue = field(kw_only=True)

    # --- what op templates ask for ---------------------------------------------------------------

    @property
    def kernels(self) -> str:
        """Name of the template of its kernels."""
        return "matrix_kernels.py.j2"

    @property
    def like(self) -> str:
        """The argument that outputs are like."""
        return "v"

    @property
    def declined(self) -> str:
        """Why no kernel runs, in an operator."""
        return "_unfit(v, S, mode, v.shape[3])"

    @property
    def kept(self) -> list[str]:
        """What of the forward operator's outputs its gradient takes: torch's of a normaliser.

        Kernels need none: q · dq has the sum that dη takes.
        """
        if self.running:
            return ["o", "o_w"]
        return ["o"] if self.scaled else []

    @property
    def kept_by_kernels(self) -> list[str]:
        """What of that a launch takes."""
        return self.kept if self.running else []

    @property
    def costs(self) -> tuple[KernelCost, ...]:
        """What the kernels cost."""
        H, K, V = (Param(n, frozenset()) for n in "HKV")
        return kernel_costs(self.scan, None, self.features, (H, K, V))

    @property
    def sizes_of_work(self) -> dict[Expr, str]:
        """Parameters of the costs: bytes of a number, heads, keys, channels, of a tile, chunks."""
        return {WIDTH: "W", **{Param(n, frozenset()): n for n in "HKV"}, TILE: "BV", CHUNK: "C"}

    def cuts(self, heads: str, keys: str, channels: str) -> dict[str, Call]:
        """Calls that tell into which segments a launch cuts time, of sizes; forwards only."""
        x = [f"x.expand(batch, length, {heads}, {n})" for n in (keys, channels)]
        return {"forwards": Call("_chunk_grid", (self.work_name("forward"), *x, f'"{self.kind}"'))}

    @property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the numbers."""
        return ["q", "k", "v", "w"] if self.narrow else ["q", "k", "v"]

    @property
    def planes(self) -> tuple[str, ...]:
        """What the names of outputs end with: of those of all channels, and of one by itself.

        A running normaliser is no output, but kept for the gradient.
        """
        return ("", "_w") if self.narrow and not self.running else ("",)

    @property
    def outputs(self) -> int:
        """How many tensors the forward operator gives."""
        return len(self.planes) + 1 + self.running

    def in_columns(self, name: str) -> list[str]:
        """Names of what stands apart for a column of one channel."""
        return [name, f"{name}_w"] if self.narrow else [name]

    @property
    def parted(self) -> bool:
        """Whether the outputs are parts of what the torch form gives."""
        return self.complex or (self.narrow and not self.running)

    def narrowed(self, o: str, like: str) -> str:
        """Text of the torch form's outputs in a dtype."""
        return super().narrowed(o, like) if self.complex else f"*_parts({o})"

    @property
    def joined_cotangent(self) -> str:
        """Text of the gradient of what the torch form gives, of its parts."""
        if self.complex:
            return super().joined_cotangent
        return "torch.cat((do, do_w.to(do.dtype)), -1)"

    def register_forward(self) -> str:
        """Registers the forward operator."""
        outputs = [self.leaves.index(x) for x in ("v", "w", "S") if x in self.leaves]
        return self._register("forward", f"({', '.join(map(str, outputs))})")

    @property
    def scaled(self) -> bool:
        """Whether a normaliser divides the output."""
        return self.features.normaliser is not None

    @property
    def running(self) -> bool:
        """Whether that is computed of what is read of the column of one channel."""
        return self.features.running

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
            # What is read of a query has the factor of the output, which no normaliser has but
            # one that is read as well.
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
        """What of that is computed ahead of the scan."""
        return {n: x for n, x in self._in_torch.items() if n != "eta" or not self.running}

    @property
    def normaliser_lines(self) -> tuple[list[str], list[str], str]:
        """Statements of a running normaliser; those of the gradient of its column, and that."""
        made, back = self._in_torch["eta"]
        (result,) = back.results
        return list(made.lines), [line[4:] for line in back.lines], result

    @property
    def gated_results(self) -> list[str]:
        """What the features' torch form gives."""
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
        """What the features' gradient takes; of the normaliser, that of the output times it."""
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
    def kind(self) -> str:
        """Which tiles its kernels have."""
        f = self.features
        decay = "decay" if self.decay else ""
        plain = f.weight is None if self.decay else f.read.plain and f.key.plain
        words = decay, "" if plain else "features", "column" if self.narrow else ""
        return " ".join(word for word in words if word)

    @property
    def code(self) -> list[str]:
        """Whatever its kernels print of expressions."""
        out = []
        for x in ("q", "k"):
            out += [] if self.feature(x).plain else [*self.rows(x), *self.rows_back(x)]
        for what in ("weight", "eta"):
            if self._number(what) is not None:
                out += [*self.number(what), *(t for _, ts in self.number_back(what) for t in ts)]
        out += self.column_back() if self.running else []
        return out

    @property
    def weighted(self) -> bool:
        """Whether values have a weight."""
        return self.features.weight is not None

    @property
    def factor(self) -> str:
        """What the output is multiplied by besides; empty for 1."""
        return "" if is_one(self.features.factor) else self._text(self.features.factor, {"": "K"})

    def scale(self, index: str) -> str:
        """What rows `[:, None]`, columns `[None, :]` or tokens of the output's side are scaled by.

        Empty where it is nothing.
        """
        return f"b_scale{index}" if self.scaled else self.factor

    @property
    def narrow(self) -> bool:
        """Whether a column of one channel stands behind those of all channels."""
        *ahead, last = self.scan.columns
        return bool(ahead) and not last.channels and all(c.channels for c in ahead)

    @property
    def step(self) -> str:
        """Numbers of a row of the state."""
        return "(V + 1)" if self.narrow else "V"

    # --- launches --------------------------------------------------------------------------------

    def given(self) -> str:
        """A statement that lays out what all kernels read."""
        return f"    given = [x.contiguous() for x in ({', '.join(self.inputs)})]"

    def given_back(self) -> str:
        """A statement that lays out the gradients of what the forward kernel writes."""
        dos = self.in_planes("do")
        if self.running:
            room = "torch.empty_like(o_w, memory_format=torch.contiguous_format)"
            return f"    grads = [do.contiguous(), {room}, o_w.contiguous()]"
        return f"    grads = [x.contiguous() for x in ({', '.join(dos)}{',' * (len(dos) == 1)})]"

    def outs(self) -> str:
        """A statement that makes room for what the forward kernel writes."""
        return self._like_values("out")

    def gradients_of_values(self) -> str:
        """A statement that makes room for the gradients of values."""
        return self._like_values("dv")

    def _like_values(self, name: str) -> str:
        form = "memory_format=torch.contiguous_format"
        if not self.narrow:
            return f"    {name} = torch.empty_like(v, {form})"
        return f"    {name}, {name}_w = (torch.empty_like(x, {form}) for x in (v, w))"

    @property
    def out_names(self) -> str:
        """What the forward kernel writes."""
        return ", ".join(self.in_columns("out"))

    def after_grads(self, read: bool) -> str:
        """What a backward kernel takes behind the outputs' gradients, up to its own gradient."""
        spans = ["reads", "spans", "ends"] if self.decay else []
        if read:
            last = ["last"] if self.decay else []
            if self.running:
                return ", ".join(["o.contiguous()", *last, *spans, "dq"])
            return ", ".join([*last, *spans, *(f"d_{x}" for x in self.leaves_of("eta")), "dq"])
        decay = ["dg"] if self.decay else []
        weight = [f"d_{x}" for x in self.leaves_of("weight")]
        return ", ".join(["last", *spans, *decay, *weight, "dk"])

    @property
    def returned_gradients(self) -> str:
        """Gradients of all arguments; those of numbers come in slices, one for some keys each."""
        slices = [f"d_{x}.sum(-1)" for x in self.numbers] + ["dg.sum(-1)"] * self.decay
        return ", ".join(["dq", "dk", *self.in_columns("dv"), *slices, "d_state"])

    @property
    def value_gradients(self) -> str:
        """Gradients of values."""
        return ", ".join(self.in_columns("dv"))

    # --- kernels ---------------------------------------------------------------------------------

    def _pointers(self, name: str) -> list[str]:
        """What a kernel takes besides places, lengths and sizes."""
        g = ["p_g"] if self.decay else []
        weight = [f"p_{x}" for x in self.leaves_of("weight")]
        eta = [] if self.running else [f"p_{x}" for x in self.leaves_of("eta")]
        values, numbers = self.in_columns("p_v"), [*weight, *eta, *g, "lengths"]
        given = ["p_q", "p_k", *values, *numbers]
        parts = [*(["decays"] if self.decay else []), "ends"]
        # The kernel of dq makes the gradient of what a running normaliser is computed of.
        d_out = [*self.in_columns("d_out"), *(["p_o_w"] if self.running else [])]
        o = ["p_o"] if self.running else []
        spans = ["reads", "spans", "ends"] if self.decay else []
        d_last = ["d_last"] if self.decay else []
        d_decay = ["d_decay"] if self.decay else []
        dp_v = self.in_columns("dp_v")
        d_eta = [f"dp_{x[2:]}" for x in eta]
        d_weight = [f"dp_{x}" for x in self.leaves_of("weight")]
        back = [*given, *d_out, "d_last", *spans, *d_decay, *d_weight]
        return {
            "forward": [*given, "state", *parts, *self.in_columns("out"), "last"],
            "forward_summary": [*given[1:], *parts],
            "backward_read": [*given, "state", *d_out, *o, *d_last, *spans, *d_eta, "dp_q"],
            "backward_keys": [*back, "dp_k", "d_state"],
            "backward_columns": ["p_q", "p_k", *numbers, *d_out, "d_last", *dp_v],
            "backward": [*back, "dp_k", *dp_v, "d_state"],
        }[name]

    def _numbers(self, name: str) -> tuple[list[str], list[str]]:
        """Lengths, and what is fixed with the mixer."""
        lengths = ["T", "TS"] if name.startswith("forward") else ["T"]
        left_out = () if self.decay else ("SPAN",)
        return lengths, [n for n in _SIZES[name].split() if n not in left_out]

    def define_kernel(self, name: str) -> str:
        """The `def` line of a kernel, or of a part of one, which takes its place first."""
        places = _PLACES.get(name, [])
        kernel = "" if places else "_kernel"
        lengths, sizes = self._numbers(name)
        params = [*places, *self._pointers(name), *(f"{n}: tl.int32" for n in lengths)]
        params += [f"{n}: tl.constexpr" for n in (*sizes, "STAGES")]
        return wrapped(f"def _{name}{kernel}{self.suffix}", params, ":", "")

    def call_part(self, name: str, place: str, indent: str) -> str:
        """Calls a part of a kernel at a place of a head."""
        lengths, sizes = self._numbers(name)
        args = ["i_p", place, *self._pointers(name), *lengths, *sizes, "STAGES"]
        return wrapped(f"_{name}{self.suffix}", args, "", indent)


def kernels(
    s: Skeleton, scan: Scan, features: PrologueEpilogue, arrays: dict[str, Buffer]
) -> MatrixKernels:
    """Returns what the templates are filled with.

    Args:
        s: the scan as the torch form sees it.
        scan: the scan with the leaves of its features.
        features: the features.
        arrays: buffers by name, those of the features' leaves too.
    """
    return MatrixKernels(
        scan, s.adjoint, s.suffix, s.family, arrays, s.shared, features=features, plain_scan=s
    )
