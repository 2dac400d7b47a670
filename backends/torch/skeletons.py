"""What the templates of a scan's modes are filled with: arguments, subscripts and the gradient.

The lines of every backward pass are made here from the plan's adjoint: each of its scans is a scan
with roles exchanged, so its einsum subscripts follow from the roles alone. The templates hold the
recurrences; no line of a gradient is written down anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dsfc.plan.ir import Adjoint, Buffer, Factor, Form, Group, Role, RoleScan, Scan, ScanDirection
from dsfc.primitives.expr import Axis, Ref

from .layout import wrapped
from .nodes import Code, Printer

_VARIABLE = {
    Factor.READ: "q",
    Factor.KEY: "k",
    Factor.VALUE: "v",
    Factor.COTANGENT: "do",
}


@dataclass(frozen=True)
class Skeleton:
    """One scan, as its templates see it.

    Attributes:
        scan: the scan.
        adjoint: its adjoint.
        suffix: of the names of its functions; empty when the module has one scan.
        arrays: the plan's buffers by name.
        shared: for matrix scans, whether read and key have no head axis.
    """

    scan: Scan
    adjoint: Adjoint
    suffix: str
    arrays: dict[str, Buffer]
    shared: bool = False

    # --- arguments of the operators --------------------------------------------------------------

    @property
    def form(self) -> str:
        """Name of the skeleton, and of its template."""
        return self.scan.form.value

    @property
    def of(self) -> str:
        """What a heading adds where a module has several scans."""
        return f" of {self.scan.name}" if self.suffix else ""

    @property
    def decay(self) -> bool:
        """Whether λ is not 1."""
        return self.scan.decay is not None

    @cached_property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the decay's."""
        return ["v"] if self.scan.form is Form.ELEMENTWISE else ["q", "k", "v"]

    @cached_property
    def decays(self) -> list[str]:
        """Arguments that give log λ, token-wise ones first."""
        if self.scan.decay is None:
            return []
        if self.scan.form is not Form.SELECTIVE:
            return ["g"]
        return [*self.rates, *self.constants]

    @cached_property
    def _leaves(self) -> dict[str, str]:
        """Leaf buffer → argument, token-wise ones first."""
        assert self.scan.decay is not None
        names = sorted(self.scan.decay.leaves, key=lambda n: self._constant(n))
        return {n: f"g{k}" if len(names) > 1 else "g" for k, n in enumerate(names, 1)}

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
    def leaf_buffers(self) -> list[str]:
        """Buffers of the decay, in the order of the arguments."""
        if self.scan.decay is None:
            return []
        if self.scan.form is not Form.SELECTIVE:
            return list(self.scan.decay.leaves)
        return list(self._leaves)

    @property
    def timed(self) -> list[str]:
        """All arguments `[B, L, ...]`."""
        if self.scan.form is Form.SELECTIVE and self.decay:
            return self.tokens + self.rates
        return self.tokens + self.decays

    @property
    def inputs(self) -> list[str]:
        """All arguments but the state."""
        return self.tokens + self.decays

    @property
    def leaves(self) -> list[str]:
        """All tensor arguments of the forward operator."""
        return [*self.inputs, "S"]

    @property
    def grads(self) -> list[str]:
        """Gradients of `inputs`."""
        return [f"d{x}" for x in self.inputs]

    @property
    def timed_grads(self) -> list[str]:
        """Gradients of `timed`."""
        return [f"d{x}" for x in self.timed]

    # --- the operators' registration --------------------------------------------------------------

    def own_backward(self) -> str:
        """Runs the backward implementation."""
        args = [*self.leaves, "do", "dS", "chunk"]
        line = f"        return _own(run({', '.join(args)}))"
        if len(line) <= 100:
            return line
        return wrapped("grads = run", args, "", "        ") + "\n        return _own(grads)"

    def call_backward(self) -> str:
        """Calls the backward operator."""
        args = [*self.leaves, "do", "dS", "mode", "chunk"]
        return wrapped(f"return _OPS.backward{self.suffix}", args, "", "        ")

    def flops_def(self, name: str) -> str:
        """The `def` line of a formula that counts operations; arguments are shapes."""
        params = [f"{x}: Any" for x in self.leaves] + ["*_: Any", "**__: Any"]
        return wrapped(f"def {name}{self.suffix}", params, " -> int:", "")

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        if self.scan.form is Form.MATRIX:
            return "(B, L, h, p), n = v, k[-1]"
        if self.scan.form is Form.ELEMENTWISE:
            return "size = math.prod(v)"
        return "size = v[1] * math.prod(S)"

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        if self.scan.form is Form.MATRIX:
            return "B * L * h * (2 * CHUNK * (n + p) + 4 * n * p)"
        return "3 * size" if self.scan.form is Form.ELEMENTWISE else "7 * size"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        if self.scan.form is Form.MATRIX:
            return "B * L * h * (2 * CHUNK * (3 * n + 2 * p) + 10 * n * p)"
        return "8 * size" if self.scan.form is Form.ELEMENTWISE else "24 * size"

    def register_forward(self) -> str:
        """Registers the forward operator."""
        at = self.leaves.index("v")
        return self._register("forward", f"({at}, {len(self.leaves) - 1})")

    def register_backward(self) -> str:
        """Registers the backward operator."""
        return self._register("backward", f"range({len(self.leaves)})")

    def _register(self, name: str, outputs: str) -> str:
        tail = self.suffix
        items = [f'"{name}{tail}"', f"_{name}{tail}", outputs, f"_{name}_flops{tail}"]
        return wrapped("_register", items, "", "")

    # --- lines -----------------------------------------------------------------------------------

    def define(self, name: str, backward: bool, *more: str) -> str:
        """The `def` line of a function of this scan, wrapped where it does not fit.

        Args:
            name: without suffix.
            backward: whether it takes cotangents and returns gradients.
            more: further parameters.
        """
        args = self.leaves + (["do", "dS"] if backward else [])
        count = len(self.leaves) if backward else 2
        result = f"tuple[{', '.join(['Tensor'] * count)}]"
        params = [f"{a}: Tensor" for a in args] + list(more)
        return wrapped(f"def {name}{self.suffix}", params, f" -> {result}:", "")

    def method(self, backward: bool) -> str:
        """The `def` line of an autograd function's forward."""
        args = self.leaves + (["do", "dS"] if backward else [])
        count = len(self.leaves) if backward else 2
        result = f"tuple[{', '.join(['Tensor'] * count)}]"
        params = [*(f"{a}: Tensor" for a in args), "mode: str", "chunk: int"]
        return wrapped("def forward", params, f" -> {result}:", "    ")

    def call(self, head: str, args: list[str], tail: str = "", indent: str = "    ") -> str:
        """A statement that calls something, wrapped where it does not fit."""
        return wrapped(head, args, tail, indent)

    def widen(self, names: list[str]) -> str:
        """Casts arguments to the accumulation dtype."""
        target = ", ".join(names)
        return wrapped(f"    {target} = _accumulate", names, "", "    ", started=True)

    # --- subscripts of the matrix form -----------------------------------------------------------

    def _step(self, f: Factor) -> str:
        """Subscripts of a factor at one token."""
        if f in (Factor.READ, Factor.KEY):
            return "Bn" if self.shared else "Bhn"
        return "Bhp"

    def _chunk(self, f: Factor, time: str) -> str:
        """Subscripts of a factor in chunks."""
        if f in (Factor.READ, Factor.KEY):
            return f"BN{time}n" if self.shared else f"BhN{time}n"
        return f"BhN{time}p"

    @property
    def drive(self) -> str:
        """Key ⊗ value at one token."""
        return f"{self._step(Factor.KEY)},Bhp->Bhnp"

    @property
    def look(self) -> str:
        """Σ read · state at one token."""
        return f"{self._step(Factor.READ)},Bhnp->Bhp"

    @cached_property
    def back(self) -> RoleScan:
        """The scan whose recurrence is the reversed one."""
        return next(s for s in self.adjoint.scans if s.direction is ScanDirection.REVERSE)

    @property
    def back_key(self) -> str:
        """Variable of the reversed recurrence's key."""
        return _VARIABLE[self.back.key]

    @property
    def back_value(self) -> str:
        """Variable of the reversed recurrence's value."""
        return _VARIABLE[self.back.value]

    @property
    def drive_back(self) -> str:
        """Key ⊗ value of the reversed recurrence, at one token."""
        return f"{self._step(self.back.key)},{self._step(self.back.value)}->Bhnp"

    def _steps(self, direction: ScanDirection) -> list[str]:
        state = "S" if direction is ScanDirection.FORWARD else "dS"
        lines = []
        for s in self.adjoint.scans:
            if s.direction is direction:
                subscripts = f"{self._step(s.read)},Bhnp->{self._step(s.result)}"
                value = f'torch.einsum("{subscripts}", {_VARIABLE[s.read]}[i], {state})'
                lines.append(f"d{_VARIABLE[s.result]}.append({value})")
        return lines

    @property
    def step_forward(self) -> list[str]:
        """Gradients read from the forward state at one token."""
        return self._steps(ScanDirection.FORWARD)

    @property
    def step_reverse(self) -> list[str]:
        """Gradients read from the reversed state at one token."""
        return self._steps(ScanDirection.REVERSE)

    @property
    def rows_in_time(self) -> str:
        """The rows of each gradient in the order of time."""
        reverse = {
            f"d{_VARIABLE[s.result]}"
            for s in self.adjoint.scans
            if s.direction is ScanDirection.REVERSE
        }
        return ", ".join(f"{g}[::-1]" if g in reverse else g for g in self.timed_grads)

    @property
    def empties(self) -> str:
        """One empty list per gradient with a time axis."""
        return ", ".join(["[]"] * len(self.timed_grads))

    @property
    def before_equation(self) -> str:
        """Σ read · state before the update, over a time axis of length at most 1."""
        if self.scan.form is Form.MATRIX:
            return f"{self._step(Factor.READ).replace('B', 'BL')},Bhnp->BLhp"
        return self.look_of("q", "BL", "B", "do", "BL")

    # --- lines of the matrix form, in chunks ------------------------------------------------------

    def split(self, names: list[str]) -> str:
        """Statements that cut arguments into chunks, head axis in front."""
        if not self.shared:
            return "\n".join(_each(names, "_split(x, chunk)"))
        plain = [n for n in names if n in ("q", "k")]
        headed = [n for n in names if n not in plain]
        lines = _each(plain, "_split(x, chunk)") + _each(headed, "_split(x, chunk, heads=1)")
        return "\n".join(lines)

    def _scores(self, later: Factor, earlier: Factor) -> tuple[str, str]:
        """Variable and einsum of all products of two factors inside a chunk."""
        a, b = self._chunk(later, "I"), self._chunk(earlier, "J")
        lead = "BhN" if "h" in a else "BN"
        x, y = _VARIABLE[later], _VARIABLE[earlier]
        return f"{x}_{y}", f'torch.einsum("{a},{b}->{lead}IJ", {x}, {y})'

    def _masked(self, later: Factor, earlier: Factor) -> str:
        text = self._scores(later, earlier)[1]
        if not self.decay:
            return f"{text}.tril_()"
        headed = "h" in self._chunk(later, "I")
        return f"{text} * pair" if headed else f"{text}.unsqueeze(1) * pair"

    def _scores_of(self, earlier_or_later: str) -> str:
        headed = self.decay or not (self.shared and earlier_or_later == "q_k")
        return "BhNIJ" if headed else "BNIJ"

    @property
    def forward_lines(self) -> list[str]:
        """The output from inside the chunk, then from before it."""
        name, _ = self._scores(Factor.READ, Factor.KEY)
        inside = f'torch.einsum("{self._scores_of(name)},BhNJp->BhNIp", {name}, v)'
        past = f'torch.einsum("{self._chunk(Factor.READ, "I")},BhNnp->BhNIp", q, past)'
        head = " * head" if self.decay else ""
        return [
            f"{name} = {self._masked(Factor.READ, Factor.KEY)}",
            f"rows = {inside}",
            f"rows += {past}{head}",
        ]

    def _needs(self, s: RoleScan) -> tuple[Factor, Factor, Factor]:
        """(later, earlier) factors of the products a role scan needs, and what it weighs."""
        other = s.key if s.contracted is Group.KEYS else s.value
        weighed = s.value if s.contracted is Group.KEYS else s.key
        pair = (s.read, other) if s.direction is ScanDirection.FORWARD else (other, s.read)
        return (*pair, weighed)

    @cached_property
    def scores(self) -> list[str]:
        """The products inside a chunk that the gradients need, each once.

        Those of read and key carry the decay already; the others get it once the decay's own
        gradient has been taken.
        """
        lines: dict[str, str] = {}
        for s in self.adjoint.scans:
            later, earlier, _ = self._needs(s)
            name, text = self._scores(later, earlier)
            decayed = self.decay and name != "q_k"
            lines.setdefault(name, f"{name} = {text if decayed else self._masked(later, earlier)}")
        return list(lines.values())

    @property
    def undecayed(self) -> list[str]:
        """Names of the products that the decay still has to be applied to."""
        names = dict.fromkeys(self._scores(*self._needs(s)[:2])[0] for s in self.adjoint.scans)
        return [n for n in names if n != "q_k"]

    @property
    def chunk_gradients(self) -> list[str]:
        """Each gradient: from inside the chunk, then from the states around it."""
        lines = []
        for s in self.adjoint.scans:
            later, earlier, weighed = self._needs(s)
            name, _ = self._scores(later, earlier)
            forward = s.direction is ScanDirection.FORWARD
            here, there = ("I", "J") if forward else ("J", "I")
            result = f"d{_VARIABLE[s.result]}"
            shape = self._chunk(s.result, here)
            w = _VARIABLE[weighed]
            subscripts = f"{self._scores_of(name)},{self._chunk(weighed, there)}->{shape}"
            lines.append(f'{result} = torch.einsum("{subscripts}", {name}, {w})')
            carry, scale = ("past", "head") if forward else ("future", "tail")
            read, after = _VARIABLE[s.read], ""
            if self.decay and s.contracted is Group.CHANNELS:
                read = f"{read} * {scale}"
            elif self.decay:
                after = f" * {scale}"
            subscripts = f"{self._chunk(s.read, here)},BhNnp->{shape}"
            lines.append(f'{result} += torch.einsum("{subscripts}", {read}, {carry}){after}')
        return lines

    @property
    def read_past(self) -> str:
        """Subscripts of the output from before the chunk."""
        return f"{self._chunk(Factor.READ, 'I')},BhNnp->BhNIp"

    @property
    def key_future(self) -> str:
        """Subscripts of the value's gradient from after the chunk."""
        return f"{self._chunk(Factor.KEY, 'J')},BhNnp->BhNJp"

    @property
    def carry(self) -> str:
        """Einsum of key and value to the drive of each chunk."""
        return f"{self._chunk(Factor.KEY, 'I')},BhNIp->BhNnp"

    @property
    def carry_back(self) -> str:
        """The same of the reversed recurrence."""
        return f"{self._chunk(self.back.key, 'I')},{self._chunk(self.back.value, 'I')}->BhNnp"

    def returned(self) -> str:
        """Statements that give the gradients back in the shape of the arguments."""
        if not self.shared:
            rows = ", ".join(self.grads)
            return f"    return *map(_join, ({rows}), like), dS"
        out = []
        for k, x in enumerate(self.inputs):
            headed = x not in ("q", "k")
            out.append(f"    d{x} = _join(d{x}, like[{k}]{', heads=1' if headed else ''})")
        return "\n".join([*out, f"    return {', '.join(self.grads)}, dS"])

    # --- lines of the selective form --------------------------------------------------------------

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

    def selective_gradients(self, direction: str) -> list[tuple[str, str]]:
        """(result, read) of the role scans in a direction."""
        return [
            (_VARIABLE[s.result], _VARIABLE[s.read])
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
        return [*lines, f"return {', '.join(results)}{',' if len(results) == 1 else ''}"]

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
            f"    chunks = zip(*_split(chunk, {', '.join(names)}), strict=True)\n"
            f"    for {targets} in chunks:"
        )

    def chunks(self, tokens: str, rates: list[str]) -> str:
        """A statement that lists the chunks of all arguments and of the output's gradient."""
        names = [*tokens.split(", "), *rates, "do"]
        return f"    chunks = list(zip(*_split(chunk, {', '.join(names)}), strict=True))"

    @property
    def chunk_targets(self) -> str:
        """Variables of one chunk."""
        return ", ".join(f"{n}_t" for n in (*self.timed, "do"))

    @property
    def constant_grads(self) -> str:
        """Gradients of the leaves without a time axis, with a comma behind each."""
        return "".join(f"d{c}, " for c in self.constants)


_FACTOR = {v: k for k, v in _VARIABLE.items()}


def _each(names: list[str], value: str) -> list[str]:
    """Statements `a, b = (f(x) for x in (a, b))`, one name without the generator."""
    if not names:
        return []
    if len(names) == 1:
        return [f"    {names[0]} = {value.replace('(x', f'({names[0]}')}"]
    joined = ", ".join(names)
    return [f"    {joined} = ({value} for x in ({joined}))"]
