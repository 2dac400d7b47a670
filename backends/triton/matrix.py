"""The matrix form: products of matrices inside a chunk, the state carried in registers."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.plan.ir import Scan
from dsfc.primitives.expr import Field

from ..torch.layout import wrapped
from ..torch.matrix import MatrixSkeleton
from ..torch.skeletons import Skeleton

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


@dataclass(frozen=True)
class MatrixKernels(MatrixSkeleton):
    """A matrix scan whose operators launch kernels.

    They take what those of the torch form take. A column of one channel (a denominator's) behind
    the others would spoil the alignment of their rows: kernels have it apart.
    """

    # --- what op templates ask for ---------------------------------------------------------------

    @property
    def operator(self) -> str:
        """Name of the template of its operators."""
        return "matrix_op.py.j2"

    @property
    def choice(self) -> str:
        """Name of the template of what its operators call."""
        return "matrix_choice.py.j2"

    @property
    def narrow(self) -> bool:
        """Whether a column of one channel stands behind those of all channels."""
        *ahead, last = self.scan.columns
        return bool(ahead) and not last.channels and all(c.channels for c in ahead)

    @property
    def step(self) -> str:
        """Numbers of a row of the state."""
        return "(V + 1)" if self.narrow else "V"

    def define_launch(self, backward: bool) -> str:
        """The `def` line of a launch."""
        name = "_launch_backward" if backward else "_launch_forward"
        return self.define(name, backward)

    def launch(self, backward: bool) -> str:
        """Launches the kernels of a direction, if nothing stands against it."""
        name = f"_launch_{'backward' if backward else 'forward'}{self.suffix}"
        args = [*self.leaves, *(["do", "dS"] if backward else [])]
        return wrapped(f"return {name}", args, "", " " * 12)

    def fallback(self, backward: bool) -> str:
        """Runs the torch form."""
        name = f"_{'backward' if backward else 'forward'}_in_torch{self.suffix}"
        args = [*self.leaves, *(["do", "dS"] if backward else []), *self.option_names]
        return wrapped(f"return {name}", args, "", " " * 4)

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
        values = ["p_q", "p_k", "p_v", *w, *g]
        parts = [*(["decays"] if self.decay else []), "ends"]
        out = ["out", *(["out_w"] if w else [])]
        d_out = ["d_out", *(["d_out_w"] if w else [])]
        spans = ["reads", "spans", "ends"] if self.decay else []
        d_last = ["d_last"] if self.decay else []
        d_decay = ["d_decay"] if self.decay else []
        dp_v = ["dp_v", *(["dp_w"] if w else [])]
        return {
            "forward_columns": [*values, "state", *parts, *out, "last"],
            "forward": [*values, "state", *parts, *out, "last"],
            "forward_summary_columns": [*values[1:], *parts],
            "forward_summary": [*values[1:], *parts],
            "backward_read": [*values, "state", *d_out, *d_last, *spans, "dp_q"],
            "backward_keys": [*values, *d_out, "d_last", *spans, *d_decay, "dp_k", "d_state"],
            "backward_columns": ["p_q", "p_k", *g, *d_out, "d_last", "dp_v"],
            "backward": [*values, *d_out, "d_last", *spans, *d_decay, "dp_k", *dp_v, "d_state"],
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


def kernels(s: Skeleton) -> Skeleton:
    """Returns what the templates are filled with."""
    return MatrixKernels(s.scan, s.adjoint, s.suffix, s.family, s.arrays, s.shared)


def has_kernels(scan: Scan) -> bool:
    """Whether a matrix scan has kernels: real ones have."""
    return scan.field is Field.REAL
