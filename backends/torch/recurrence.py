"""The text of a `Recurrence`: its step, the step of its gradient, and the operators around them.

Three functions hold what the plan says, with the spec's names: the states after a token and what is
read there, the gradients of the states before a token, and the gradients of the coefficients. What
goes over the tokens and calls them is the same for every recurrence of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dsfc.expr.build import walk
from dsfc.expr.tree import Axis, Expr, Field, Now, Ref, Time, children
from dsfc.plan.ir import Buffer, Plan, Role
from dsfc.plan.recurrence_ir import Assignment, Recurrence
from dsfc.plan.scan_ir import Scan

from .code import cast
from .context import arriving_states, leaving_states
from .layout import WIDTH, tuple_text, wrapped
from .token_functions import function_lines, size_in


@dataclass(frozen=True)
class RecurrenceText:
    """The values that fill `recurrence.py.j2`.

    Attributes:
        kernel: the recurrence.
        suffix: of the names of its functions; empty when the module has one recurrence.
        arrays: the plan's buffers by name.
        names: identifier of each name of the plan.
    """

    kernel: Recurrence
    suffix: str
    arrays: dict[str, Buffer]
    names: Callable[[str], str]

    @property
    def of(self) -> str:
        """The states of the recurrence, for a heading."""
        return " of " + " and ".join(s.state for s in self.kernel.states)

    # --- what it takes ----------------------------------------------------------------------------

    @property
    def timed(self) -> list[str]:
        """Coefficients `[B, L, ...]`."""
        return [c for c in self.kernel.coefficients if not self._is_fixed(c)]

    @property
    def fixed(self) -> list[str]:
        """Coefficients that are the same at every token, `[1, ...]`."""
        return [c for c in self.kernel.coefficients if self._is_fixed(c)]

    def _is_fixed(self, name: str) -> bool:
        return self.arrays[name].role is Role.CONSTANT

    @property
    def coefficients(self) -> list[str]:
        """Identifiers of the coefficients, those with a time first."""
        return [self.names(c) for c in (*self.timed, *self.fixed)]

    @property
    def states(self) -> list[str]:
        """Identifiers of the states."""
        return [self.names(s.state) for s in self.kernel.states]

    @property
    def leaves(self) -> list[str]:
        """All tensor arguments of the forward operator that have gradients."""
        return [*self.coefficients, *self.states]

    @property
    def bars(self) -> list[str]:
        """Names of the gradients of reads, then of the last states."""
        return [self.names(r.bar) for r in self.kernel.reads] + self._bars_of_states

    @property
    def _bars_of_states(self) -> list[str]:
        return [self.names(s.bar) for s in self.kernel.states]

    @property
    def timed_tuple(self) -> str:
        """The coefficients with a time, as a tuple."""
        return tuple_text([self.names(c) for c in self.timed])

    @property
    def fixed_tuple(self) -> str:
        """The others, as a tuple."""
        return tuple_text([self.names(c) for c in self.fixed])

    @property
    def states_tuple(self) -> str:
        """The states, as a tuple."""
        return tuple_text(self.states)

    @property
    def bars_tuple(self) -> str:
        """The gradients of reads, as a tuple."""
        return tuple_text([self.names(r.bar) for r in self.kernel.reads])

    @property
    def last_bars_tuple(self) -> str:
        """The gradients of the last states, complex where they are so inside, as a tuple."""
        items = [
            f"{self.names(s.bar)}.to(_widened({self.names(s.bar)}.dtype))"
            if s.bar_field is not s.field
            else self.names(s.bar)
            for s in self.kernel.states
        ]
        return tuple_text(items)

    # --- definitions ------------------------------------------------------------------------------

    def _tensors(self, names: Iterable[str]) -> list[str]:
        return [f"{n}: Tensor" for n in names]

    def _result(self, count: int) -> str:
        return f" -> tuple[{', '.join(['Tensor'] * count)}]:"

    def define_forward(self, name: str, *more: str) -> str:
        """The `def` line of a function that gives reads and last states."""
        params = [*self._tensors(self.leaves), "lengths: Tensor | None", *more]
        count = len(self.kernel.reads) + len(self.states)
        return wrapped(f"def {name}{self.suffix}", params, self._result(count), "")

    def define_backward(self) -> str:
        """The `def` line of the operator that gives gradients."""
        params = [*self._tensors(self.leaves), "lengths: Tensor | None"]
        params += [*self._tensors(self.bars), "chunk: int"]
        return wrapped(f"def _backward{self.suffix}", params, self._result(len(self.leaves)), "")

    def method(self, backward: bool) -> str:
        """The `def` line of an autograd function's forward."""
        params = [*self._tensors(self.leaves), "lengths: Tensor | None"]
        count = len(self.kernel.reads) + len(self.states)
        if backward:
            params, count = [*params, *self._tensors(self.bars)], len(self.leaves)
        return wrapped("def forward", [*params, "chunk: int"], self._result(count), "    ")

    def call(self, head: str, backward: bool, indent: str, *more: str) -> str:
        """A call with all arguments."""
        bars = self.bars if backward else []
        return wrapped(head, [*self.leaves, "lengths", *bars, *more], "", indent)

    @property
    def define_shapes(self) -> str:
        """The `def` line of the function that gives the shapes of reads."""
        params = [*self._tensors(self.leaves), "*_: Any"]
        return wrapped(f"def _shapes{self.suffix}", params, " -> tuple[Any, ...]:", "")

    @property
    def make(self) -> str:
        """Gathers what is computed at a token."""
        parts = [f"{n}{self.suffix}" for n in ("_step", "_step_back", "_gradients")]
        return wrapped("run = _Stepped", [*parts, self.wanted], "", "    ")

    @property
    def read_steps(self) -> str:
        """Goes over all tokens."""
        parts = [f"_step{self.suffix}", f"_look{self.suffix}"]
        return wrapped(
            "return _read_steps",
            [*parts, "states", "timed", "fixed", "lengths", "shapes"],
            "",
            "    ",
        )

    def operations(self, ways: int) -> int:
        """Operations per number of the state and token, forwards or backwards."""
        k = self.kernel
        values = [a.value for level in k.levels for a in level]
        if ways == 1:
            values += [r.value for r in k.reads]
        else:
            # States are computed twice more: up to those that are kept, and between them.
            adjoint = k.adjoint
            values = 2 * values + [a.value for a in (*adjoint.steps, *adjoint.values)]
            values += [g.value for g in adjoint.gradients]
        return sum(1 for v in values for e in walk(v) if children(e))

    @property
    def fakes(self) -> list[str]:
        """Functions that give empty results of both operators."""
        tail, count = self.suffix, len(self.leaves)
        start = f"{len(self.coefficients)}" if self.coefficients else ""
        shapes = f"_shapes{tail}(*given[:-1])"
        outs = f"outs = [given[0].new_empty(x, dtype=dtype) for x, dtype in {shapes}]"
        alike = "x.new_empty(x.shape) for x in given"
        return [
            f"def _fake{tail}(*given: Any) -> tuple[Tensor, ...]:",
            f"    {outs}",
            f"    return *outs, *({alike}[{start}:{count}])",
            "",
            "",
            f"def _fake_back{tail}(*given: Any) -> tuple[Tensor, ...]:",
            f"    return tuple({alike}[:{count}])",
        ]

    @property
    def closing(self) -> str:
        """Statements behind the runtime: the operators' registration, and what calls them."""
        tail = self.suffix
        forward = ["NAMESPACE", f'"forward{tail}"', f"_forward{tail}", f"_fake{tail}"]
        backward = ["NAMESPACE", f'"backward{tail}"', f"_backward{tail}", f"_fake_back{tail}"]
        return "\n".join(
            [
                wrapped("_register", [*forward, f"_forward_flops{tail}"], "", ""),
                wrapped("_register", [*backward, f"_backward_flops{tail}"], "", ""),
                f"_recurrence{tail} = _applied(_Recurrence{tail})",
            ]
        )

    def define_flops(self, name: str) -> str:
        """The `def` line of a formula that counts operations; arguments are shapes."""
        params = [f"{x}: Any" for x in self.leaves] + ["*_: Any", "**__: Any"]
        return wrapped(f"def {name}{self.suffix}", params, " -> int:", "")

    @property
    def size(self) -> str:
        """Tokens times numbers of the state, read off the shapes."""
        first = self.names(self.timed[0])
        sizes = " + ".join(f"math.prod({s})" for s in self.states)
        return f"{first}[1] * ({sizes})" if len(self.states) > 1 else f"{first}[1] * {sizes}"

    @property
    def shapes(self) -> list[str]:
        """Shape and dtype of each read."""
        first = self.names(self.timed[0])
        # A state that is real is as wide as one that is complex.
        real = [self.names(s.state) for s in self.kernel.states if s.field is Field.REAL]
        state = (real or self.states)[0]
        items = []
        for r in self.kernel.reads:
            b = self.arrays[r.output]
            sizes = [self._size_outside(a) for a in b.axes]
            shape = f"({', '.join([f'*{first}.shape[:2]', *sizes])}{'' if sizes else ','})"
            dtype = f"_widened({state}.dtype)" if b.field is Field.COMPLEX else f"{state}.dtype"
            items.append(f"({shape}, {dtype})")
        return items

    @property
    def return_shapes(self) -> str:
        """Returns them."""
        tail = "," if len(self.shapes) == 1 else ""
        line = f"    return ({', '.join(self.shapes)}{tail})"
        if len(line) <= WIDTH:
            return line
        rows = "".join(f"        {item},\n" for item in self.shapes)
        return f"    return (\n{rows}    )"

    def _size_outside(self, axis: Axis) -> str:
        root = axis.copy_of or axis.name
        places = [(self.names(s.state), s.axes) for s in self.kernel.states]
        places += [(self.names(c), self.arrays[c].axes) for c in self.kernel.coefficients]
        return size_in(root, places)

    # --- the three functions ----------------------------------------------------------------------

    @property
    def step(self) -> list[str]:
        """The function that takes the states through a token."""
        befores = [(s.before, s.axes) for s in self.kernel.states]
        level = [a for level in self.kernel.levels for a in level]
        results = [_ref(s.after, s.axes, s.field) for s in self.kernel.states]
        axes = [s.axes for s in self.kernel.states]
        return self._function(
            "_step", "Returns the states after a token.", befores, False, level, results, axes
        )

    @property
    def look(self) -> list[str]:
        """The function that reads the states before and after a token."""
        states = [(s.before, s.axes) for s in self.kernel.states]
        states += [(s.after, s.axes) for s in self.kernel.states]
        results = [r.value for r in self.kernel.reads]
        axes = [self.arrays[r.output].axes for r in self.kernel.reads]
        about = "Returns what is read at a token, of the states before and after it."
        return self._function("_look", about, states, False, [], results, axes)

    @property
    def step_back(self) -> list[str]:
        """The function that takes the gradients of the states back through a token."""
        bars = [(s.bar, s.axes) for s in self.kernel.states]
        states = self.kernel.states
        results = [_ref(s.bar_before, s.axes, s.bar_field) for s in states]
        about = "Returns the gradients of the states before a token, from those after it."
        steps = self.kernel.adjoint.steps
        axes = [s.axes for s in states]
        return self._function("_step_back", about, bars, True, steps, results, axes)

    @property
    def gradients(self) -> list[str]:
        """The function that gives the gradients of coefficients."""
        states = self.kernel.states
        states_around = [(s.before, s.axes) for s in states] + [(s.after, s.axes) for s in states]
        states_around += [(s.bar, s.axes) for s in states]
        gradients = {g.coefficient: g.value for g in self.kernel.adjoint.gradients}
        named = [c for c in (*self.timed, *self.fixed) if c in gradients]
        about = "Returns the gradients of coefficients at any number of tokens."
        return self._function(
            "_gradients",
            about,
            states_around,
            True,
            self.kernel.adjoint.values,
            [gradients[c] for c in named],
            [self.arrays[c].axes for c in named],
        )

    @property
    def wanted(self) -> str:
        """Numbers of the coefficients that have a gradient, as a tuple."""
        gradients = {g.coefficient for g in self.kernel.adjoint.gradients}
        both = (*self.timed, *self.fixed)
        return tuple_text([str(k) for k, c in enumerate(both) if c in gradients])

    def _function(
        self,
        name: str,
        about: str,
        states: Sequence[tuple[str, tuple[Axis, ...]]],
        bars: bool,
        body: Sequence[Assignment],
        results: Sequence[Expr],
        axes: Sequence[tuple[Axis, ...]],
    ) -> list[str]:
        """A function of states and coefficients whose values have a batch, and may have tokens."""
        body = _read(body, results)
        places = [(self.names(n), a) for n, a in states]
        coefficients = (*self.timed, *self.fixed)
        places += [(self.names(c), self.arrays[c].axes) for c in coefficients]
        if bars:
            reads = self.kernel.reads
            places += [(self.names(r.bar), self.arrays[r.output].axes) for r in reads]
        return function_lines(
            f"{name}{self.suffix}",
            about,
            places,
            self._like(places),
            self.names,
            body,
            results,
            axes,
        )

    def _like(self, places: Sequence[tuple[str, tuple[Axis, ...]]]) -> str:
        """A real tensor of the dtype and device that a function computes in: its first argument."""
        first, _ = places[0]
        is_complex = Field.COMPLEX in {self.kernel.states[0].field, self.kernel.states[0].bar_field}
        return f"{first}.real" if is_complex else first


def _read(body: Sequence[Assignment], results: Sequence[Expr]) -> list[Assignment]:
    """Returns the assignments that results depend on, in order."""
    needed = {e.name for r in results for e in walk(r) if isinstance(e, Ref)}
    kept: list[Assignment] = []
    for a in reversed(body):
        if a.name in needed:
            kept.append(a)
            needed |= {e.name for e in walk(a.value) if isinstance(e, Ref)}
    return kept[::-1]


def _ref(name: str, axes: tuple[Axis, ...], kind: Field) -> Ref:
    return Ref(name, frozenset(axes), kind, Time.TOKEN, Now(0))


def call_lines(
    text: RecurrenceText,
    next_states: dict[str, str],
    unused: Callable[[str], str],
    distributed: bool = False,
) -> list[str]:
    """Returns the statements of the functional form that call a recurrence.

    Args:
        text: the recurrence.
        next_states: learns the variable of each state's next value.
        unused: gives an unused variable name.
        distributed: whether processes may share a sequence, and states arrive from the one before.
    """
    k, names = text.kernel, text.names
    arguments = []
    for c in (*text.timed, *text.fixed):
        b = text.arrays[c]
        dtype = _dtype(b.field, "wide" if c in k.transitions else "dtype")
        lead = ".unsqueeze(0)" if b.role is Role.CONSTANT else ""
        arguments.append(cast(f"{names(c)}{lead}", dtype))
    initial = [cast(names(s.state), _dtype(s.field, "wide")) for s in k.states]
    before: list[str] = []
    if distributed:
        before, arrived = arriving_states(initial, arguments, unused)
        initial = [f"*{arrived}"]
    arguments += initial
    outs = [names(r.output) for r in k.reads]
    for s in k.states:
        next_states.setdefault(s.state, unused(f"{names(s.state)}_next"))
    lasts = [next_states[s.state] for s in k.states]
    head = f"{', '.join([*outs, *lasts])} = _recurrence{text.suffix}"
    lines = ["    _legal(mode, MODES)", *before]
    targets = [*outs, *lasts]
    many = len(head) + 6 > WIDTH
    if many:
        together = unused(f"{k.name}_out")
        head = f"{together} = _recurrence{text.suffix}"
    lines += wrapped(head, [*arguments, "lengths", "chunk"], "", "    ").split("\n")
    if many:
        lines += [f"    {x} = {together}[{at}]" for at, x in enumerate(targets)]
    if distributed:
        lines.append(leaving_states(outs, lasts, arrived))
    lines += [
        f"    {names(r.output)} = {cast(names(r.output), 'dtype')}"
        for r in k.reads
        if text.arrays[r.output].field is Field.REAL
    ]
    return lines


def _dtype(kind: Field, real: str) -> str:
    return "field" if kind is Field.COMPLEX else real


def recurrences(plan: Plan, names: Callable[[str], str]) -> tuple[RecurrenceText, ...]:
    """Returns what the templates of each recurrence are filled with, in the order of the plan."""
    arrays = {b.name: b for b in plan.arrays}
    kernels = [k for k in plan.kernels if isinstance(k, Recurrence)]
    if len(kernels) == 1 and not any(isinstance(k, Scan) for k in plan.kernels):
        return (RecurrenceText(kernels[0], "", arrays, names),)
    return tuple(
        RecurrenceText(k, f"_stepped_{number}", arrays, names)
        for number, k in enumerate(kernels, 1)
    )
