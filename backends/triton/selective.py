"""The selective form: gates, decays and recurrence of all states of a channel in one kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dsfc.expr.build import ONE, ZERO, add, mul, num, prim, remake, rewrite, walk
from dsfc.expr.derivative import pull
from dsfc.expr.tree import Add, Expr, Field, Mul, Now, Num, Ref, Time, children
from dsfc.fused.ir import OUT_BAR, VALUE_BAR, Prologue, rate_bar, real_imag
from dsfc.fused.names import fresh
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import Scan

from ..torch.layout import WIDTH, wrapped
from ..torch.selective import SelectiveSkeleton
from ..torch.skeletons import Skeleton
from .behind import Behind
from .nodes import LOG2_E, KernelPrinter
from .selective_arguments import SelectiveArguments
from .statements import Statements, statements

assert isinstance(LOG2_E, Num)
LOG_2 = num(Fraction(1) / LOG2_E.value)
_BAR = Ref("dg", frozenset(), Field.REAL, Time.TOKEN, Now(0))
_TURN_BAR = Ref("d_turn", frozenset(), Field.REAL, Time.TOKEN, Now(0))
STATES = 16
"""Most states of a channel that a thread holds one by one. The forward pass holds more in tiles;
the backward pass gives so many to each program."""
TOGETHER = 32
"""Most states of such a tile: keys and queries of so many are in registers beside all states."""


@dataclass(frozen=True)
class SelectiveKernels(SelectiveArguments):
    """A selective scan, its gates in the torch form and its kernels.

    In a kernel, log₂ λ of a state is a function of constants of channel and state, which are
    computed once, and of values of the token; in a sum of products each has one such constant.
    """

    @property
    def kernels(self) -> str:
        """Name of the template of its kernels."""
        return "selective_kernels.py.j2"

    @property
    def most(self) -> int:
        """Most states of a channel for which time is cut: registers of a segment's are as many."""
        return self.most_pairs if self.complex else STATES

    # --- the torch form of the gates -------------------------------------------------------------

    @property
    def gates_meaning(self) -> str:
        """Docstring of the gates' torch form."""
        more = ", and what is added to its output" if self.adds else ""
        return f'"""What the scan takes, of what its gates read{more}."""'

    def broadcast(self) -> str:
        """Gives the constants of the gates an axis of time."""
        names, lines = self.gate_constants, []
        joined = ", ".join(names)
        if self.complex:
            lines.append("    field = torch.promote_types(_accumulator(dtype), torch.complex64)")
        if len(names) == 1:
            lines.append(f"    {joined} = {joined}.unsqueeze(1)")
        elif names:
            lines.append(f"    {joined} = (x.unsqueeze(1) for x in ({joined}))")
        return "\n".join(lines)

    def widen(self, names: list[str]) -> str:
        """Casts arguments to the accumulation dtype; pairs of key and query stay as they are."""
        return super().widen([n for n in names if n not in self.vectors])

    @property
    def _torch_wanted(self) -> list[tuple[str, Expr]]:
        wanted = [("v", self.gates.value), *((self._named_rate(n), e) for n, e in self.gates.rates)]
        return [*wanted, ("added", self.gates.added)] if self.adds else wanted

    def _named_rate(self, leaf: str) -> str:
        """Variable of a leaf of log λ in the torch form, or of a plane of one."""
        plain = self._log_leaves[leaf]
        return (
            self._free(f"{plain}{self._parts[leaf].replace('.', '_')}") if self.complex else plain
        )

    @property
    def gated_results(self) -> list[str]:
        """What the gates' torch form returns."""
        names = [n for n, _ in self._torch_wanted]
        found = dict(zip(names, self.torch_gates.results, strict=True))
        vectors = [self._whole(x) for x in (self.queries, self.keys)]
        narrow = "field" if self.complex else "dtype"
        results = [vectors[0], f"_kept({vectors[1]}, counts)", f"{found['v']}.to({narrow})"]
        texts = {x.name: x.argument for x in self.others}
        texts |= {n: found[self._named_rate(n)] for n, _ in self.gates.rates}
        for name in self.plain_scan.decays:
            planes = {
                self._parts.get(n, ""): texts[n] for n, x in self._log_leaves.items() if x == name
            }
            text = f"{self._joined_leaf(planes)}.to(field)" if self.complex else planes[""]
            results.append(f"_kept({text}, counts)" if name in self.plain_scan.rates else text)
        if self.adds:
            results.append(f"{found['added']}.to(dtype)")
        return results

    def _whole(self, vector: list[str]) -> str:
        """Text of a key or query, in the field of the torch form."""
        if len(vector) == 2:
            return f"torch.complex(*_accumulate({', '.join(vector)}))"
        return f"{vector[0]}.to(field)" if self.complex else vector[0]

    @staticmethod
    def _joined_leaf(planes: dict[str, str]) -> str:
        """Text of a leaf of log λ of the torch form; a plane that is not there is 0."""
        if ".imag" not in planes:
            return planes[".real"]
        imag = planes[".imag"]
        return f"torch.complex({planes.get('.real') or f'torch.zeros_like({imag})'}, {imag})"

    @property
    def behind(self) -> Behind:
        """Statements of the torch form behind the plain scan: real parts, and sums with inputs."""
        cotangent = "do.to(S.dtype)" if self.complex else "do"
        if self.adds:
            output = f"{self._real_output('added.dtype')} + added"
            return Behind(
                apart="added",
                output=output,
                output_of_plain=output,
                kept=self.nothing_kept,
                cotangent=cotangent,
                pulled=("do",),
            )
        return Behind(
            output=self._real_output(f"{self.like}.dtype"),
            output_of_plain=self._real_output(self.like_of_inputs) if self.complex else "",
            kept=self.nothing_kept,
            undone=(f"do = {cotangent}",) if self.complex else (),
        )

    def _real_output(self, like: str) -> str:
        """Text of an output of the torch form as what is returned."""
        return f"torch.real(o).to({like})" if self.complex else "o"

    @property
    def _bars(self) -> dict[str, str]:
        """What holds the gradients that those of the leaves read, in torch."""
        plain, parts = self._log_leaves, self._parts
        rates = {rate_bar(n): f"d{plain[n]}{parts.get(n, '')}" for n, _ in self.gates.rates}
        value = "dv.real" if self.complex else "dv"
        return {VALUE_BAR: value, **rates, OUT_BAR: "d_added"}

    @property
    def pulled(self) -> list[str]:
        """What the gates' gradient takes."""
        decays = [f"d{x}" for x in self.plain_scan.decays]
        return ["dq", "dk", "dv", *decays, *(["d_added"] if self.adds else [])]

    @property
    def pull_lines(self) -> list[str]:
        """Statements of the gates' gradient."""
        bars = {text.partition(".")[0] for text in self._bars.values()}
        computed = [x for x in self.pulled if x in bars]
        fixed = [f"d{x.plain}" for x in self.others if x.constant]
        kept = [x for x in self.pulled if x not in ("dq", "dv", "d_added", *fixed)]
        return [*self.taken(computed, kept), *self._torch[1].lines]

    @property
    def pulled_results(self) -> list[str]:
        """Gradients of all arguments but the state."""
        given = {"q": "dq", "k": "dk"}
        if self.complex:  # a part of complex numbers is no array of its own
            parts = {x: "imag" if x.endswith("_im") else "real" for x in self.vectors}
            given = {x: f"d{x[0]}.{part}.to(dtype, copy=True)" for x, part in parts.items()}
        copied = ".clone()" if self.complex else ""
        given |= {x.argument: f"d{x.plain}{x.part}{copied}" for x in self.others}
        results = [(self.pulled_gates | given)[x] for x in self.inputs]
        # No output of an operator is an input.
        copied = "d_added.to(dtype, copy=True)"
        own = {"d_added": "d_added.clone()", "d_added.to(dtype)": copied}
        return [own.get(text, text) for text in results]

    # --- kernels ---------------------------------------------------------------------------------

    def in_state(self, name: str, at: str = "") -> list[str]:
        """Names of the planes of something that a state has, and where they stand."""
        return [f"{name}{p}{at}" for p in self.state_planes]

    def driven_by(self, plane: int, value: str, key: str = "b_k") -> str:
        """Text of what is added to a plane of a state: the key's there times the value."""
        return f" + {key}{self.keys[plane][1:]} * {value}" if plane < len(self.keys) else ""

    def read_of(self, state: list[str]) -> str:
        """Text of the real part of query · state."""
        first, *rest = zip(self.queries, state, strict=False)
        text = f"b_{first[0]} * {first[1]}"
        return text + "".join(f" - b_{q} * {x}" for q, x in rest)

    def pushed(self, decay: list[str], value: str) -> list[str]:
        """Texts of what conj(λ query) · value, a gradient of the output, adds to a state's."""
        if not self.complex:
            return [f" + {decay[0]} * (b_k * {value})"]
        if len(self.queries) == 1:
            texts = [f"{x} * (b_k * {value})" for x in decay]
        else:
            texts = [f"({x}) * {value}" for x in self.times(decay, ["b_k", "b_k_im"])]
        return [f" + {texts[0]}", f" - {texts[1]}"]

    @property
    def log_gradients(self) -> list[str]:
        """Texts of the planes of conj(h) · dh_j, the gradient of log λ at token i."""
        if not self.complex:
            return ["dh_j * h[i]"]
        return self.times_conjugate(self.in_state("h", "[i]"), self.in_state("dh_j"))

    @property
    def value_gradient(self) -> str:
        """Text of the gradient of the value that one state gives, at token i."""
        planes = self.in_state("before_decay")
        return " + ".join(f"b_{k}[i] * {x}" for k, x in zip(self.keys, planes, strict=False))

    @property
    def vector_gradients(self) -> list[str]:
        """Texts of the gradients of query and key at token i, one channel's, in their order."""
        states, bars = self.in_state("h", "[i + 1]"), self.in_state("before_decay")
        signs = ("do", "-do")
        queries = [f"{do} * {h}" for _, do, h in zip(self.queries, signs, states, strict=False)]
        return [*queries, *(f"{x} * v[i]" for _, x in zip(self.keys, bars, strict=False))]

    @property
    def kept_numbers(self) -> str:
        """How many numbers are kept of a head's states before a block; all imaginary ones last."""
        return "2 * N * P" if self.complex else "N * P"

    @property
    def real_like(self) -> str:
        """A tensor like which arrays of real numbers are made."""
        return "S.real" if self.complex else "S"

    @property
    def log2_e(self) -> str:
        """Text of log₂ e."""
        return repr(math.log2(math.e))

    @property
    def output(self) -> str:
        """Text of the output."""
        return f"y + {self.forward.results[-1]}" if self.adds else "y"

    @property
    def log_2(self) -> str:
        """Text of log 2."""
        return repr(math.log(2))

    def define_kernel(self, name: str) -> str:
        """The `def` line of a kernel; it takes pointers, then lengths, then sizes and tiles."""
        inputs = [f"p_{x}" for x in self.inputs]
        rest = [f"d{p}" for p in inputs if p[2:] not in self.keyed]
        parts = ["decays", "ends"]
        params = {
            "forward": ["state", "lengths", *parts, "out", "last", "states"],
            "forward_summary": ["lengths", *parts],
            "backward_summary": ["lengths", "d_out", *parts],
            "backward": [
                *("lengths", "states", *parts, "d_out", "d_last", "d_keyed"),
                *(*rest, "d_state"),
            ],
        }[name]
        params = [*inputs, *params, "T: tl.int32", "TS: tl.int32"]
        sizes = ["H", "P", "N", "NG", "BT", "BD", "STEP", "KEEP", "STAGES"]
        if name == "backward":
            sizes = ["H", "P", "N", "NP", "BD", "STEP", "STAGES", "PRECISION"]
        params += [f"{n}: tl.constexpr" for n in sizes]
        return wrapped(f"def _{name}_kernel{self.suffix}", params, ":", "")

    @cached_property
    def _logs(self) -> tuple[list[Expr], tuple[tuple[Ref, Expr], ...]]:
        """log₂ |λ| and a complex λ's phase, over variables and constants of channel and state.

        Returns them, and those constants.
        """
        hoisted: dict[Expr, Ref] = {}
        names = {*self._arguments, *self._arguments.values()}

        def constant(e: Expr) -> Expr:
            if not any(isinstance(n, Ref) for n in walk(e)):
                return e
            if e not in hoisted:
                name = fresh("rate", names)
                names.add(name)
                hoisted[e] = Ref(name, frozenset(), Field.REAL, Time.CONST, None)
            return hoisted[e]

        def term(e: Expr, unit: Expr) -> Expr:
            if isinstance(e, Add):
                return add(*(term(a, unit) for a in e.args))
            factors = e.args if isinstance(e, Mul) else (e,)
            fixed = [a for a in factors if a.time is Time.CONST]
            rest = [inside(a) for a in factors if a.time is not Time.CONST]
            return mul(constant(mul(unit, *fixed)), *rest)

        def inside(e: Expr) -> Expr:
            if e.time is Time.CONST:
                return constant(e)
            return remake(e, tuple(map(inside, children(e))))

        # Of one channel and state nothing has axes: what is broadcast is not summed here.
        parts = [rewrite(e, _without_axes) for e in real_imag(self.gates.log_decay)]
        logs = [term(e, unit) for e, unit in zip(parts, (LOG2_E, ONE), strict=False)]
        return logs, tuple((r, e) for e, r in hoisted.items())

    def _state_printer(self, state: str = "", token: str = "") -> KernelPrinter:
        """Prints over values of one state; `state` and `token` follow what is kept in tuples."""
        leaves = {x.name: f"b_{x.argument}" for x in self.others}
        leaves |= {n: f"c_{n}{token}" for n, _ in self.rates}
        leaves |= {r.name: f"{r.name}{state}" for r, _ in self._logs[1]}
        return KernelPrinter(lambda name: leaves.get(name, name))

    @property
    def hoisted(self) -> list[tuple[str, str]]:
        """Constants of channel and state that log₂ λ has: variable and value."""
        printer = self._state_printer()
        return [(r.name, printer.print(e).text) for r, e in self._logs[1]]

    def decay_of(self, state: str, token: str = "") -> list[str]:
        """Statements that compute λ of a state at a token."""
        printer = self._state_printer(state, token)
        log, *phase = self._logs[0]
        if not phase:
            return self._lines(lambda x: f"decay = tl.exp2({x})", log, printer)
        lines = self._lines(lambda x: f"size = tl.exp2({x})", log, printer)
        lines += self._lines(lambda x: f"turn = {x}", phase[0], printer)
        turn = Ref("turn", frozenset(), Field.REAL, Time.TOKEN, Now(0))
        for p, name in zip(self.state_planes, ("cos", "sin"), strict=True):
            text = printer.print(prim(name, turn)).text
            lines.append(f"{' ' * 16}decay{p} = size * {text}")
        return lines

    @cached_property
    def _pulled(self) -> dict[str, Expr]:
        """Gradient of every leaf of log₂ λ, by name, from dg / log 2."""
        bars = zip(self._logs[0], (_BAR, _TURN_BAR), strict=False)
        return {r.name: e for r, e in pull(bars).refs.items()}

    def added_gradient(self, name: str, target: str) -> list[str]:
        """Statements that add the gradient of a leaf of log₂ λ of state j at token i, / log 2."""
        e, printer = self._pulled.get(name, ZERO), self._state_printer("", "[i]")
        made = f"d_c_{name}_next"
        if target == made:
            return self._lines(lambda x: f"{made} = (d_c_{name}[i] + {x},) + {made}", e, printer)
        return self._lines(lambda x: f"{target} = {target} + {x}", e, printer)

    def leaf_gradient(self, name: str) -> list[str]:
        """Statements that compute the gradient of a leaf of log λ of state j at token i."""
        e, printer = self._pulled.get(name, ZERO), self._state_printer("", "[i]")
        return self._lines(lambda x: f"d_w = tl.where(m_c, {x}, 0)", mul(LOG_2, e), printer)

    @staticmethod
    def _lines(made: Callable[[str], str], e: Expr, printer: KernelPrinter) -> list[str]:
        """A statement made of an expression, on several lines where it does not fit."""
        indent = " " * 16
        line = f"{indent}{made(printer.print(e).text)}"
        if len(line) <= WIDTH:
            return [line]
        found = statements([("part", e)], (), printer, str, indent)
        return [*found.lines, f"{indent}{made(found.results[0])}"]

    @property
    def rates(self) -> list[tuple[str, str]]:
        """Leaves of log λ that a channel has at a token, and their text."""
        texts = self.forward.results[1:]
        computed = [(n, text) for (n, _), text in zip(self.gates.rates, texts, strict=False)]
        rest = [x for x in self.others if x.argument in self.channelled]
        return [*computed, *((x.name, f"b_{x.argument}") for x in rest)]

    @property
    def given_rates(self) -> list[tuple[str, str]]:
        """Those that are no results of gates: leaf and argument."""
        return [(x.name, x.argument) for x in self.others if x.argument in self.channelled]

    @property
    def keyed_leaves(self) -> list[tuple[str, str]]:
        """Leaves of log λ along the keys, and their arguments."""
        return [(x.name, x.argument) for x in self.others if x.argument in self.keyed]

    @property
    def whole_leaves(self) -> list[tuple[str, str]]:
        """Leaves of log λ with all axes that vary over time, and their arguments."""
        return [(x.name, x.argument) for x in self.others if x.argument in self.whole]

    @property
    def kinds(self) -> int:
        """How many gradients along the keys are summed over channels: a power of two."""
        return 1 << (len(self.keyed) - 1).bit_length()

    @property
    def fixed_gradients(self) -> list[tuple[str, str]]:
        """Constant leaves of log λ, and their gradients from those of the hoisted constants."""
        sums = {r.name: f"sum_{r.name}[j]" for r, _ in self._logs[1]}
        bars = [
            (e, Ref(r.name, frozenset(), Field.REAL, Time.CONST, None)) for r, e in self._logs[1]
        ]
        pulled = {r.name: e for r, e in pull(bars).refs.items()}
        leaves = {x.name: f"b_{x.argument}" for x in self.others} | sums
        printer = KernelPrinter(leaves.__getitem__)
        return [
            (x.argument, printer.print(mul(LOG_2, pulled.get(x.name, ZERO))).text)
            for x in self.others
            if x.constant
        ]

    @property
    def fixed_read(self) -> list[str]:
        """Constant leaves of log λ that those gradients read."""
        texts = [text for _, text in self.fixed_gradients]
        return [x for x in self.fixed if any(re.search(rf"\bb_{x}\b", text) for text in texts)]

    # --- statements of one token -----------------------------------------------------------------

    def _printer(self) -> KernelPrinter:
        own = {VALUE_BAR: "d_value", OUT_BAR: "d_added"}
        own |= {rate_bar(n): f"d_rate_{n}" for n, _ in self.gates.rates}
        return KernelPrinter(lambda n: own.get(n) or f"b_{self._arguments[n]}")

    @property
    def _driven(self) -> list[tuple[str, Expr]]:
        return [("value", self.gates.value), *((f"rate_{n}", e) for n, e in self.gates.rates)]

    def _bound(self, wanted: list[tuple[str, Expr]]) -> Statements:
        return self._at_token(wanted, self._printer())

    @cached_property
    def forward(self) -> Statements:
        """Value, rates and what is added, at one token."""
        return self._bound([*self._driven, ("added", self.gates.added)])

    @cached_property
    def driven(self) -> Statements:
        """Value and rates at one token."""
        return self._bound(self._driven)

    @cached_property
    def gradients(self) -> Statements:
        """Gradients of what the gates read, at one token."""
        names = [*self.gate_tokens, *self.gate_constants]
        pairs = zip(names, self.gates.gradients, strict=True)
        return self._bound([(f"db_{x}", e) for x, e in pairs])

    @property
    def timed_gradients(self) -> list[tuple[str, str]]:
        """Arguments along the channels, and the text of their gradients at one token."""
        given = [(argument, f"d_rate_{n}") for n, argument in self.given_rates]
        return [*zip(self.gate_tokens, self.gradients.results, strict=False), *given]

    @property
    def constant_gradients(self) -> list[tuple[str, str]]:
        """Constants of the gates, and the text of their gradients at one token."""
        results = self.gradients.results[len(self.gate_tokens) :]
        return list(zip(self.gate_constants, results, strict=True))

    @property
    def code(self) -> list[str]:
        """The expressions that its kernels print."""
        parts = (self.forward, self.gradients)
        lines = [line for part in parts for line in (*part.lines, *part.results)]
        return [
            *lines,
            *self.decay_of(""),
            *(x for n in self._pulled for x in self.leaf_gradient(n)),
        ]


def kernels(
    s: Skeleton, scan: Scan, gates: Prologue, arrays: dict[str, Buffer]
) -> SelectiveKernels:
    """Returns what the templates are filled with.

    Args:
        s: the scan as the torch form sees it.
        scan: the scan with the leaves of its gates.
        gates: the gates.
        arrays: buffers by name, those of the gates' leaves too.
    """
    assert isinstance(s, SelectiveSkeleton)
    return SelectiveKernels(scan, s.adjoint, s.suffix, s.family, arrays, gates=gates, plain_scan=s)


def _without_axes(e: Expr) -> Expr | None:
    return replace(e, over=frozenset()) if isinstance(e, Ref) else None
