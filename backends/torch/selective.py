"""The selective form: the decay varies over keys and channels, its tile is computed inside."""

from __future__ import annotations

from functools import cached_property

from dsfc.expr.tree import Axis, Ref
from dsfc.plan.ir import Role
from dsfc.plan.scan_ir import Factor

from .code import Code
from .contractions import contraction, updated
from .layout import wrapped
from .nodes import Printer
from .skeletons import VARIABLE, Skeleton

_FACTOR = {v: k for k, v in VARIABLE.items()}


class SelectiveSkeleton(Skeleton):
    """A scan whose arguments have the spec's own axes; log λ is an expression over several."""

    @property
    def decays(self) -> list[str]:
        """Arguments that give log λ, token-wise ones first."""
        return [*self.rates, *self.constants]

    @property
    def timed(self) -> list[str]:
        """All arguments `[B, L, ...]`."""
        return self.tokens + self.rates

    @property
    def leaf_buffers(self) -> list[str]:
        """Buffers of the decay, in the order of the arguments."""
        return list(self._leaves)

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        return "size = v[1] * math.prod(S)"

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "7 * size"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "24 * size"

    @cached_property
    def _leaves(self) -> dict[str, str]:
        """Leaf buffer → argument, token-wise ones first."""
        assert self.scan.decay is not None
        names = sorted(self.scan.decay.leaves, key=lambda n: self._constant(n))
        return {n: f"g{k}" for k, n in enumerate(names, 1)}

    def _constant(self, name: str) -> bool:
        return self.arrays[name].role is Role.CONSTANT

    @property
    def rates(self) -> list[str]:
        """Leaf arguments with a time axis."""
        return [v for n, v in self._leaves.items() if not self._constant(n)]

    @property
    def constants(self) -> list[str]:
        """Leaf arguments without a time axis, `[B, ...]`."""
        return [v for n, v in self._leaves.items() if self._constant(n)]

    @property
    def before_equation(self) -> str:
        """Σ read · state before the update, over a time axis of length at most 1."""
        return self.look_of("q", "BL", "B", "do", "BL")

    @cached_property
    def _letters(self) -> dict[Axis, str]:
        tile = sorted((*self.scan.heads, *self.scan.keys, *self.scan.channels))
        free = [c for c in "abcdefghijklmnopqrstuvwxyz"]
        out: dict[Axis, str] = {}
        for a in tile:
            want = a.name[0].lower()
            letter = want if want in free else free[0]
            out[a] = letter
            free.remove(letter)
        return out

    @property
    def tile(self) -> str:
        """Letters of the state's axes."""
        return "".join(self._letters[a] for a in sorted(self._letters))

    def letters_of(self, f: Factor) -> str:
        """Letters of a factor's own axes."""
        s = self.scan
        name = {Factor.READ: s.read, Factor.KEY: s.key}.get(f)
        axes = set(self.arrays[name].axes) if name else {*s.heads, *s.channels}
        return "".join(self._letters[a] for a in sorted(axes))

    def drive_of(self, key: str, value: str, lead: str, out: str) -> str:
        """Subscripts of key ⊗ value, given `lead`ing letters in and out."""
        a, b = (self.letters_of(_FACTOR[x]) for x in (key, value))
        return f"{lead}{a},{lead}{b}->{out}{self.tile}"

    def look_of(self, read: str, lead: str, state: str, result: str, out: str) -> str:
        """Subscripts of Σ read · state."""
        a, b = self.letters_of(_FACTOR[read]), self.letters_of(_FACTOR[result])
        return f"{lead}{a},{state}{self.tile}->{out}{b}"

    def updated(self, state: str, decay: str, key: str, value: str) -> str:
        """Text of the state after one token: decay · state + key ⊗ value."""
        return updated(state, decay, self.drive_of("k", "v", "B", "B"), key, value)

    @property
    def state_back(self) -> str:
        """Text of the gradient of the state behind token i, and what the token adds to it."""
        key, value = self.back_key, self.back_value
        equation = self.drive_of(key, value, "B", "B")
        return updated("dS", None, equation, f"{key}[i]", f"{value}[i]")

    def looked(self, read: str, state: str, index: str = "[i]", result: str = "do") -> str:
        """Text of Σ read · state at one token."""
        return contraction(self.look_of(read, "B", "B", result, "B"), f"{read}{index}", state)

    def selective_gradients(self, direction: str) -> list[tuple[str, str]]:
        """(result, read) of the role scans in a direction."""
        return [
            (VARIABLE[s.result], VARIABLE[s.read])
            for s in self.adjoint.scans
            if s.direction.value == direction
        ]

    def _leaf_code(self, like: str) -> Printer:
        names = self._leaves

        def ref(r: Ref) -> Code:
            if r.name in names:
                return Code(names[r.name], self.arrays[r.name].axes, True)
            return Code("dg", tuple(sorted(r.over)), True)

        return Printer(ref, {}, like)

    def log_decay(self) -> str:
        """Text of log λ over the tile, from the leaves."""
        assert self.scan.decay is not None
        code = self._leaf_code("v").print(self.scan.decay.expr)
        tile = tuple(sorted(self._letters))
        return code.aligned(tile, True)

    def leaf_gradient_lines(self) -> list[str]:
        """Statements that return each leaf's gradient, in the order of the arguments."""
        assert self.adjoint.pairing is not None
        by_leaf = {g.leaf: g.value for g in self.adjoint.pairing.leaves}
        printer = self._leaf_code("dg")
        lines, results = [], []
        for name, argument in self._leaves.items():
            code = printer.print(by_leaf[name])
            lines.append(f"d{argument} = {code.aligned(self.arrays[name].axes, True)}")
            results.append(f"d{argument}")
        returned = ", ".join(results) if len(results) > 1 else f"({results[0]},)"
        return [*lines, f"return {returned}"]

    def define_log_decay(self) -> str:
        """The `def` line of the function that computes log λ."""
        params = [f"{a}: Tensor" for a in self.decays]
        return wrapped(f"def _log_decay{self.suffix}", params, " -> Tensor:", "")

    def define_decays(self) -> str:
        """The `def` line of the function that computes λ of a chunk."""
        params = [f"{a}: Tensor" for a in self.decays]
        return wrapped(f"def _decays{self.suffix}", params, " -> Tensor:", "")

    def define_leaf_gradients(self) -> str:
        """The `def` line of the function that computes the leaves' gradients."""
        params = ["dg: Tensor", *(f"{a}: Tensor" for a in self.decays)]
        return wrapped(f"def _leaf_gradients{self.suffix}", params, " -> tuple[Tensor, ...]:", "")

    def leaf_arguments(self, at: str, time_first: bool = False) -> str:
        """The decay's arguments, token-wise ones at a token (`_i`, `[i]`) or a chunk (`_t`)."""
        turn = ".transpose(0, 1)" if time_first else ""
        rates = [f"{x}{at}{turn}" for x in self.rates]
        return ", ".join([*rates, *self.constants])

    def decays_of_a_chunk(self) -> str:
        """Text of λ at every token of a chunk; `drive` has its shape."""
        call = f"_decays{self.suffix}({self.leaf_arguments('_t')})"
        return call if self.rates else f"{call}.expand_as(drive)"

    def loop(self, tokens: str, rates: list[str], indent: str) -> str:
        """The head of a loop over tokens."""
        names = [*tokens.split(", "), *rates]
        targets = ", ".join(f"{n}_i" for n in names)
        bound = f"{indent}steps = zip(*(x.unbind(1) for x in ({', '.join(names)})), strict=True)"
        return f"{bound}\n{indent}for {targets} in steps:"

    def unbind(self, names: list[str]) -> str:
        """A statement that cuts arguments into tokens."""
        joined = ", ".join(names)
        return f"    {joined} = (x.unbind(1) for x in ({joined}))"

    def loop_chunks(self, tokens: str, rates: list[str]) -> str:
        """The head of a loop over chunks."""
        names = [*tokens.split(", "), *rates]
        targets = ", ".join(f"{n}_t" for n in names)
        return (
            f"    chunks = zip(*_chunks_of(chunk, {', '.join(names)}), strict=True)\n"
            f"    for {targets} in chunks:"
        )

    def chunks(self, tokens: str, rates: list[str]) -> str:
        """A statement that lists the chunks of all arguments and of the output's gradient."""
        names = [*tokens.split(", "), *rates, "do"]
        return f"    chunks = list(zip(*_chunks_of(chunk, {', '.join(names)}), strict=True))"

    @property
    def chunk_targets(self) -> str:
        """Variables of one chunk."""
        return ", ".join(f"{n}_t" for n in (*self.timed, "do"))

    @property
    def constant_grads(self) -> str:
        """Gradients of the leaves without a time axis, with a comma behind each."""
        return "".join(f"d{c}, " for c in self.constants)
