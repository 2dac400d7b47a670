"""The matrix form: products of matrices inside a chunk, the state carried in registers."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.tree import Expr, Param
from dsfc.fused.ir import PrologueEpilogue
from dsfc.kernels.step import has_step
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import Scan
from dsfc.plan.sizes import CHUNK

from ..torch.layout import Call, wrapped
from ..torch.skeletons import Skeleton
from .cost.counts import TILE, WIDTH, KernelCost
from .cost.scans import kernel_costs
from .matrix_statements import MatrixStatements

_SIZES = {
    "forward": "H K V C BK BV",
    "forward_summary": "H K V C BK BV",
    "backward_read": "H K V C BK BV K_ALL V_ALL SPAN",
    "backward_summary": "H K V C BK BV",
    "backward_keys": "H K V C BK V_ALL SPAN",
    "backward_columns": "H K V C BV K_ALL",
    "backward": "H K V C BK BV K_ALL V_ALL SPAN",
}
_PLACES = {"backward_keys": ["i_p", "i_k"], "backward_columns": ["i_p", "i_v"]}
"""Parts of kernels, and where in a row and head they are."""


@dataclass(frozen=True)
class MatrixKernels(MatrixStatements):
    """A matrix scan whose operators take what its features are computed of.

    Arguments are query and key `[B, L, h, n]`, value `[B, L, h, p]`, the leaves of weight and
    normaliser and log λ, each `[B, L, h]`, and the state. A column of one channel (a denominator's)
    behind the others would spoil the alignment of their rows: its value and output `[B, L, h, 1]`
    stand apart, and every program has it besides its own columns.
    """

    # --- what op templates ask for ---------------------------------------------------------------

    @property
    def kernels(self) -> str:
        """Name of the template of its kernels."""
        return "matrix_kernels.py.j2"

    @property
    def gives_each(self) -> bool:
        """Whether what is called of it gives the state after each of some tokens."""
        return has_step(self.plain.scan)

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
        """Calls that tell into which segments a launch cuts time, of sizes."""
        x = [f"x.expand(batch, length, {heads}, {n})" for n in (keys, channels)]
        return {f"{d}s": Call("_chunk_grid", self._cut(d, *x)) for d in ("forward", "backward")}

    def _cut(self, direction: str, keys: str, values: str) -> tuple[str, ...]:
        """Arguments of the call that cuts the time of some tensors into segments."""
        return f'"{direction}"', self.work_name(direction), keys, values, f'"{self.kind}"'

    def cut(self, direction: str) -> str:
        """A statement that cuts time into segments."""
        head = "grid, tokens, sizes = _chunk_grid"
        return wrapped(head, self._cut(direction, "k", "v"), "", "    ")

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
    def kind(self) -> str:
        """Which tiles its kernels have."""
        f = self.features
        decay = "decay" if self.decay else ""
        plain = f.weight is None if self.decay else f.read.plain and f.key.plain
        words = decay, "" if plain else "features", "column" if self.narrow else ""
        return " ".join(word for word in words if word)

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

    @property
    def parts(self) -> str:
        """Arguments of backward kernels that describe segments."""
        return "decays, sums" if self.decay else "sums"

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
        decays = ["decays"] if self.decay else []
        parts, sums = [*decays, "ends"], [*decays, "sums"]
        # The kernel of dq makes the gradient of what a running normaliser is computed of.
        d_out = [*self.in_columns("d_out"), *(["p_o_w"] if self.running else [])]
        o = ["p_o"] if self.running else []
        spans = ["reads", "spans", "ends"] if self.decay else []
        d_last = ["d_last"] if self.decay else []
        d_decay = ["d_decay"] if self.decay else []
        dp_v = self.in_columns("dp_v")
        d_eta = [f"dp_{x[2:]}" for x in eta]
        d_weight = [f"dp_{x}" for x in self.leaves_of("weight")]
        back = [*given, *sums, *d_out, "d_last", *spans, *d_decay, *d_weight]
        return {
            "forward": [*given, "state", *parts, *self.in_columns("out"), "last"],
            "forward_summary": [*given[1:], *parts],
            "backward_read": [*given, "state", *sums, *d_out, *o, *d_last, *spans, *d_eta, "dp_q"],
            "backward_summary": [*given, *d_out, "sums"],
            "backward_keys": [*back, "dp_k", "d_state"],
            "backward_columns": ["p_q", "p_k", *numbers, *sums, *d_out, "d_last", *dp_v],
            "backward": [*back, "dp_k", *dp_v, "d_state"],
        }[name]

    def _numbers(self, name: str) -> tuple[list[str], list[str]]:
        """Lengths, and what is fixed with the mixer."""
        left_out = () if self.decay else ("SPAN",)
        return ["T", "TS"], [n for n in _SIZES[name].split() if n not in left_out]

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
