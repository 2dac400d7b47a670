"""The matrix form: products of matrices inside a chunk, the state carried in registers."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dsfc.plan.features import FEATURE_BAR, Feature, Features
from dsfc.plan.ir import Buffer, Scan
from dsfc.primitives.build import is_one, mul, walk
from dsfc.primitives.expr import Expr, Ref, Size

from ..torch.code import Code
from ..torch.layout import WIDTH, wrapped
from ..torch.matrix import MatrixSkeleton
from ..torch.skeletons import Skeleton
from .nodes import KernelPrinter
from .statements import NamingPrinter, Statements, statements

_SIZES = {
    "forward_columns": "H K V STEP C BK",
    "forward": "H K V C BK BV",
    "forward_summary_columns": "H K V STEP C BK",
    "forward_summary": "H K V C BK BV",
    "backward_read": "H K V C BK BV K_ALL V_ALL SPAN",
    "backward_keys": "H K V C BK V_ALL SPAN",
    "backward_columns": "H K V STEP C K_ALL",
    "backward": "H K V C BK BV K_ALL V_ALL SPAN",
}


_RESERVED = frozenset((*dir(builtins), *keyword.kwlist, *keyword.softkwlist))
_WORDS = frozenset(
    "q k v g S lengths o do dS mode chunk dtype counts scale B L H C K V T W".split()
)
_WORDS |= frozenset(
    "grid tokens options parts given more x self ctx math triton torch F tl".split()
)
_WORDS |= frozenset("dq dk dv dg grads out last sizes programs pull gated weight eta".split())
"""Words that the operators' functions and the kernels use themselves."""


@dataclass(frozen=True)
class MatrixKernels(MatrixSkeleton):
    """A matrix scan whose operators take what its features are computed of.

    Arguments are query and key `[B, L, h, n]`, value `[B, L, h, p]`, the leaves of weight and
    normaliser and log λ, each `[B, L, h]`, and the state. A column of one channel (a denominator's)
    behind the others would spoil the alignment of their rows: kernels have it apart.

    Attributes:
        features: what the kernels compute besides the recurrence.
        plain_scan: the scan as its modes see it.
    """

    features: Features = field(kw_only=True)
    plain_scan: Skeleton = field(kw_only=True)

    # --- what op templates ask for ---------------------------------------------------------------

    @property
    def operator(self) -> str:
        """Name of the template of its operators."""
        return "gated_op.py.j2"

    @property
    def kernels(self) -> str:
        """Name of the template of its kernels."""
        return "matrix_kernels.py.j2"

    @property
    def plain(self) -> Skeleton:
        """The scan as its modes see it, whose functions take query, key, value and log λ."""
        return self.plain_scan

    @property
    def like(self) -> str:
        """The argument that outputs are like."""
        return "v"

    @property
    def declined(self) -> str:
        """Why no kernel runs, in an operator."""
        return f"_unfit(v, S, mode, {int(self.narrow)})"

    @property
    def options_of_launch(self) -> list[str]:
        """What the forward operator and its launch take behind the leaves."""
        return ["lengths"]

    @property
    def kept(self) -> list[str]:
        """What of the forward operator's outputs its gradient takes: torch's of a normaliser.

        Kernels need none: q · dq has the sum that dη takes.
        """
        return ["o"] if self.scaled else []

    def in_planes(self, name: str) -> list[str]:
        """Names of the planes of something: a real value is whole."""
        return [name]

    @property
    def results_of_plain(self) -> str:
        """What the plain loop over time gives: output and state."""
        return "tuple[Tensor, Tensor]"

    def launch(self, backward: bool) -> str:
        """Returns what a launch gives."""
        more = ["lengths", "do", "dS"] if backward else self.options_of_launch
        head = f"return _launch_{'backward' if backward else 'forward'}{self.suffix}"
        return wrapped(head, [*self.leaves, *more], "", " " * 12)

    @property
    def nothing_kept(self) -> str:
        """An output besides: none."""
        return ""

    @property
    def can_go_back(self) -> str:
        """A condition of the backward launch."""
        return ""

    @property
    def narrows(self) -> bool:
        """Whether the torch form of the gates gives numbers as narrow as it takes."""
        return True

    @property
    def adds(self) -> bool:
        """Whether something is added to the output."""
        return False

    @property
    def scaled(self) -> bool:
        """Whether a normaliser divides the output."""
        return self.features.normaliser is not None

    @cached_property
    def _arguments(self) -> dict[str, str]:
        """Leaf of weight or normaliser → argument."""
        out: dict[str, str] = {}
        for leaf in self.features.numbers:
            name = leaf
            while name in _WORDS or name in out.values() or name in _RESERVED:
                name += "_"
            out[leaf] = name
        return out

    @property
    def numbers(self) -> list[str]:
        """Arguments of one number a token and head, besides log λ."""
        return list(self._arguments.values())

    @property
    def inputs(self) -> list[str]:
        """All arguments but the state."""
        return [*self.tokens, *self.numbers, *self.decays]

    def define_op(self, backward: bool) -> str:
        """The `def` line of an operator."""
        name = "_backward" if backward else "_forward"
        params = [*self._parameters(backward), "mode: str", "chunk: int"]
        return wrapped(f"def {name}{self.suffix}", params, f" -> {self._result(backward)}:", "")

    def method(self, backward: bool) -> str:
        """The `def` line of an autograd function's forward."""
        params = [*self._parameters(backward), "mode: str", "chunk: int"]
        return wrapped("def forward", params, f" -> {self._result(backward)}:", "    ")

    def define_launch(self, backward: bool) -> str:
        """The `def` line of a launch."""
        name = "_launch_backward" if backward else "_launch_forward"
        params = [*(f"{x}: Tensor" for x in self.leaves), "lengths: Tensor | None"]
        params += [f"{x}: Tensor" for x in (("do", "dS") if backward else ())]
        return wrapped(f"def {name}{self.suffix}", params, f" -> {self._result(backward)}:", "")

    def _parameters(self, backward: bool) -> list[str]:
        out = [*(f"{x}: Tensor" for x in self.leaves), "lengths: Tensor | None"]
        return [*out, *(f"{x}: Tensor" for x in ((*self.kept, "do", "dS") if backward else ()))]

    def _result(self, backward: bool) -> str:
        count = len(self.leaves) if backward else 2
        return f"tuple[{', '.join(['Tensor'] * count)}]"

    def call_backward(self) -> str:
        """Calls the backward operator."""
        args = [*self.leaves, "lengths", *self.kept, "do", "dS", "mode", "chunk"]
        return wrapped(f"return _OPS.backward{self.suffix}", args, "", "        ")

    # --- the torch form of the features ----------------------------------------------------------

    @property
    def gates_meaning(self) -> str:
        """Docstring of the features' torch form."""
        what = "Query, key, value" + (", log λ" if self.decay else "")
        more = "; what multiplies the output" if self.scaled else ""
        return f'"""{what}{more}. Tokens that do not count have no key."""'

    @property
    def widened(self) -> list[str]:
        """Arguments that are computed with, not passed on."""
        f = self.features
        read = [] if f.read.plain and (self.scaled or is_one(f.factor)) else ["q"]
        return [*read, *([] if f.key.plain else ["k"]), *self.numbers]

    def define_gates(self) -> str:
        """The `def` line of the features' torch form."""
        params = [*(f"{x}: Tensor" for x in self.inputs), "lengths: Tensor | None"]
        results = ", ".join(["Tensor"] * (3 + self.decay + self.scaled))
        return wrapped(f"def _gates{self.suffix}", params, f" -> tuple[{results}]:", "")

    @cached_property
    def torch_gates(self) -> Statements:
        """The features, in torch."""
        f, lines = self.features, []
        read = f.read.value if self.scaled else mul(f.factor, f.read.value)
        sized = [f.read.value, f.key.value, f.factor]
        if any(isinstance(e, Size) for each in sized for e in walk(each)):
            lines.append("    n = q.shape[-1]")
        for x, feature, value in (("q", f.read, read), ("k", f.key, f.key.value)):
            if not isinstance(value, Ref):
                lines += self._in_torch(x, value, dict.fromkeys(feature.leaves, x))
        v = "v"
        if f.weight is not None:
            lines += self._in_torch("weight", f.weight.value, self._arguments)
            v = "(v * weight[..., None]).to(dtype)"
        q, k = ("q.to(dtype)" if "q" in self.widened else "q"), "_kept(k, counts)"
        k += ".to(dtype)" if "k" in self.widened else ""
        results = [q, k, v, *(["_kept(g, counts)"] if self.decay else [])]
        if f.normaliser is not None:
            lines += self._in_torch("eta", f.normaliser.value, self._arguments)
            results.append(f"({self._text(f.factor, {'n': 'n'})} / eta)[..., None]")
        return Statements(tuple(lines), tuple(results))

    def _in_torch(self, name: str, value: Expr, of: Mapping[str, str]) -> list[str]:
        axes = tuple(sorted(value.axes))
        sizes = {a.name: "n" for a in self.scan.keys}
        printer = NamingPrinter(lambda r: Code(of[r.name], axes, True), sizes, "v")
        made = statements([(name, value)], [], printer, self._variable, "    ")
        (result,) = made.results
        return list(made.lines) if result == name else [f"    {name} = {result}"]

    def return_gated(self) -> str:
        """The `return` statement of the features' torch form."""
        results = self.torch_gates.results
        line = f"    return {', '.join(results)}"
        return line if len(line) <= WIDTH else wrapped("return ", list(results), "", "    ")

    def broadcast(self) -> str:
        """Nothing: no argument lacks the axis of time."""
        return ""

    # --- the features in kernels -----------------------------------------------------------------

    def feature(self, x: str) -> Feature:
        """φ of "q", ψ of "k"."""
        return self.features.read if x == "q" else self.features.key

    def _variable(self, name: str) -> str:
        return f"b_{name}"

    def _lines(self, name: str, value: Expr, of: Mapping[str, str]) -> list[str]:
        """Statements of a kernel's loop that compute a value."""
        printer = KernelPrinter(of.__getitem__, {a.name: "K" for a in self.scan.keys})
        return list(statements([(name, value)], [], printer, self._variable, " " * 8).lines)

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

    def _number(self, what: str) -> Feature | None:
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
        if self.decay:
            return "decay" if f.weight is None else "decay features"
        return "" if f.read.plain and f.key.plain else "features"

    @property
    def code(self) -> list[str]:
        """Whatever its kernels print of expressions."""
        out = []
        for x in ("q", "k"):
            out += [] if self.feature(x).plain else [*self.rows(x), *self.rows_back(x)]
        for what in ("weight", "eta"):
            if self._number(what) is not None:
                out += [*self.number(what), *(t for _, ts in self.number_back(what) for t in ts)]
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
        """Statements that lay out what all kernels read."""
        others = [x for x in self.inputs if x != "v"]
        if not self.narrow:
            return f"    given = [x.contiguous() for x in ({', '.join(self.inputs)})]"
        behind = [x for x in others if x not in ("q", "k")]
        given = ", ".join(["q", "k", "*v.tensor_split((-1,), -1)", *behind])
        return f"    given = [x.contiguous() for x in ({given})]"

    def given_back(self) -> str:
        """A statement that lays out the gradients of what the forward kernel writes."""
        if not self.narrow:
            return "    grads = [do.contiguous()]"
        return "    grads = [x.contiguous() for x in do.tensor_split((-1,), -1)]"

    def outs(self) -> str:
        """A statement that makes room for what the forward kernel writes."""
        return self._like_values("out")

    def gradients_of_values(self) -> str:
        """A statement that makes room for the gradients of values."""
        return self._like_values("dv")

    def _like_values(self, name: str) -> str:
        if not self.narrow:
            return f"    {name} = torch.empty_like(v, memory_format=torch.contiguous_format)"
        return f"    {name}, {name}_w = (torch.empty_like(x) for x in given[2:4])"

    @property
    def out_names(self) -> str:
        """What the forward kernel writes."""
        return "out, out_w" if self.narrow else "out"

    def after_grads(self, read: bool) -> str:
        """What a backward kernel takes behind the outputs' gradients, up to its own gradient."""
        spans = ["reads", "spans", "ends"] if self.decay else []
        if read:
            last = ["last"] if self.decay else []
            return ", ".join([*last, *spans, *(f"d_{x}" for x in self.leaves_of("eta")), "dq"])
        decay = ["dg"] if self.decay else []
        weight = [f"d_{x}" for x in self.leaves_of("weight")]
        return ", ".join(["last", *spans, *decay, *weight, "dk"])

    @property
    def returned_gradients(self) -> str:
        """Gradients of all arguments; those of numbers come in slices, one for some keys each."""
        slices = [f"d_{x}.sum(-1)" for x in self.numbers] + ["dg.sum(-1)"] * self.decay
        return ", ".join(["dq", "dk", self.joined("dv"), *slices, "d_state"])

    @property
    def value_gradients(self) -> str:
        """Gradients of values."""
        return "dv, dv_w" if self.narrow else "dv"

    def joined(self, name: str) -> str:
        """Columns side by side again."""
        return f"torch.cat(({name}, {name}_w), -1)" if self.narrow else name

    # --- kernels ---------------------------------------------------------------------------------

    def _pointers(self, name: str, narrow: bool) -> list[str]:
        """What a kernel takes besides places, lengths and sizes."""
        if narrow and name.endswith("columns"):
            of = {"p_v": "p_w", "out": "out_w", "d_out": "d_out_w", "dp_v": "dp_w"}
            of |= {x: f"{x} + V" for x in ("state", "ends", "last", "d_last")}
            return [of.get(x, x) for x in self._pointers(name, False)]
        w = ["p_w"] if self.narrow and not name.endswith("columns") else []
        g = ["p_g"] if self.decay else []
        weight = [f"p_{x}" for x in self.leaves_of("weight")]
        eta = [f"p_{x}" for x in self.leaves_of("eta")]
        values = ["p_q", "p_k", "p_v", *w, *weight, *eta, *g, "lengths"]
        parts = [*(["decays"] if self.decay else []), "ends"]
        out = ["out", *(["out_w"] if w else [])]
        d_out = ["d_out", *(["d_out_w"] if w else [])]
        spans = ["reads", "spans", "ends"] if self.decay else []
        d_last = ["d_last"] if self.decay else []
        d_decay = ["d_decay"] if self.decay else []
        dp_v = ["dp_v", *(["dp_w"] if w else [])]
        d_eta = [f"dp_{x}" for x in self.leaves_of("eta")]
        d_weight = [f"dp_{x}" for x in self.leaves_of("weight")]
        back = [*values, *d_out, "d_last", *spans, *d_decay, *d_weight]
        return {
            "forward_columns": [*values, "state", *parts, *out, "last"],
            "forward": [*values, "state", *parts, *out, "last"],
            "forward_summary_columns": [*values[1:], *parts],
            "forward_summary": [*values[1:], *parts],
            "backward_read": [*values, "state", *d_out, *d_last, *spans, *d_eta, "dp_q"],
            "backward_keys": [*back, "dp_k", "d_state"],
            "backward_columns": ["p_q", "p_k", *values[3 + len(w) :], "d_out", "d_last", "dp_v"],
            "backward": [*back, "dp_k", *dp_v, "d_state"],
        }[name]

    def _numbers(self, name: str) -> tuple[list[str], list[str]]:
        """Lengths, and what is fixed with the mixer."""
        lengths = ["T", "TS"] if name.startswith("forward") else ["T"]
        left_out = () if self.decay else ("SPAN",)
        return lengths, [n for n in _SIZES[name].split() if n not in left_out]

    def define_kernel(self, name: str) -> str:
        """The `def` line of a kernel, or of a part of one, which takes its place first."""
        places = {"columns": ["i_p", "o_v"], "keys": ["i_p", "i_k"]}.get(name.split("_")[-1], [])
        kernel = "" if places else "_kernel"
        lengths, sizes = self._numbers(name)
        params = [*places, *self._pointers(name, False), *(f"{n}: tl.int32" for n in lengths)]
        params += [f"{n}: tl.constexpr" for n in (*sizes, "STAGES")]
        return wrapped(f"def _{name}{kernel}{self.suffix}", params, ":", "")

    def call_columns(self, name: str, indent: str) -> str:
        """Calls the part of a kernel that has some columns."""
        return self._call(name, "o_v", False, indent)

    def call_narrow(self, name: str, indent: str) -> str:
        """Calls it with the columns of one channel."""
        return self._call(name, "o_w", True, indent)

    def call_keys(self, indent: str) -> str:
        """Calls the part that has some keys."""
        return self._call("backward_keys", "i_r", False, indent)

    def _call(self, name: str, place: str, narrow: bool, indent: str) -> str:
        lengths, sizes = self._numbers(name)
        of = {"STEP": "V + 1" if self.narrow else "V"}
        if narrow:
            of["V"] = "1"
        numbers = [*lengths, *(of.get(n, n) for n in sizes), "STAGES"]
        args = ["i_p", place, *self._pointers(name, narrow), *numbers]
        return wrapped(f"_{name}{self.suffix}", args, "", indent)


def kernels(
    s: Skeleton, scan: Scan, features: Features, arrays: dict[str, Buffer]
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
