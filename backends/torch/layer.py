"""The layer of an emitted module: an `nn.Module` that keeps sizes and parameters, checks calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.expr.build import walk
from dsfc.expr.tree import Axis, Rename
from dsfc.plan.heads import head_axis
from dsfc.plan.ir import Plan, Pointwise
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan

from .context import crossing, refusal
from .forms.row import Layout
from .forms.table import FORMS
from .header import about
from .layout import WIDTH, literals, paragraph, returned_text, tuple_text, wrapped
from .modes import modes
from .parameters import ParameterText, stored_axes
from .signature import Signature, layout


@dataclass(frozen=True, slots=True)
class LayerText:
    """What `layer.py.j2` is filled with.

    Attributes:
        plan: the plan.
        signature: the module's names.
        given: sizes that the functional form takes, since no tensor has them.
        in_place: whether kernels of all scans may write a state where the one before lies.
        at_once: whether one call gives the states after all of its tokens.
        distributed: whether processes may share a sequence.
        heads: the axis that processes may share out; None where they are not to.
    """

    plan: Plan
    signature: Signature
    given: tuple[str, ...] = ()
    in_place: bool = False
    at_once: bool = True
    distributed: bool = False
    heads: Axis | None = None

    # --- the class and its constructor -----------------------------------------------------------

    @property
    def title(self) -> str:
        """The docstring's first line, opened."""
        return paragraph(f"{about(self.plan)} As a layer.", "    ", '    """')

    @property
    def stored(self) -> list[str]:
        """What the docstring says of parameters and buffers; those of one kind stand together."""
        kinds: dict[str, list[str]] = {}
        for p in self.signature.parameters:
            shape = f"`[{p.shape}]`" if p.shape else "`[]`"
            about = f"{shape}, fixed" if p.buffer else shape
            about += f": {p.name}, {p.note}" if p.note else ""
            kinds.setdefault(about, []).append(p.attribute)
        return [f"{', '.join(names)}: {about}." for about, names in kinds.items()]

    @property
    def refuses_sizes(self) -> bool:
        """Whether the constructor raises: a size is derived, or two are to be equal."""
        return bool(self.equal_sizes) or any(
            "raise" in line for z in self.signature.sizes for line in z.lines
        )

    @property
    def keep_sizes(self) -> list[str]:
        """Statements that make each size an attribute."""
        names = [z.name for z in self.signature.sizes]
        together = f"{', '.join(f'self.{n}' for n in names)} = {', '.join(names)}"
        if len(together) + 8 <= WIDTH:
            return [together] if names else []
        return [f"self.{n} = {n}" for n in names]

    @property
    def equal_sizes(self) -> list[str]:
        """Statements that refuse different sizes of axes that stand for one another."""
        values = [k.value for k in self.plan.kernels if isinstance(k, Pointwise)]
        values += [r.value for r in self.plan.reference]
        pairs = {
            tuple(sorted((self.signature.size(e.old), self.signature.size(e.new))))
            for value in values
            for e in walk(value)
            if isinstance(e, Rename)
        }
        lines = []
        for a, b in sorted(p for p in pairs if p[0] != p[1]):
            why = f"{a} = {{{a}}} and {b} = {{{b}}} must be equal: one is renamed to the other"
            lines += [f"if {a} != {b}:", f'    raise ValueError(f"{why}")']
        return lines

    @property
    def declare(self) -> list[str]:
        """Statements that make parameters and buffers, their values still undefined."""
        out = []
        if self.signature.kept:
            made = "torch.get_default_dtype() if dtype is None else dtype"
            out.append(f"        wide = _accumulator({made})")
        for p in self.signature.parameters:
            dtype = "wide" if p.kept else "dtype"
            empty = f"torch.empty({p.shape or '()'}, device=device, dtype={dtype})"
            if p.buffer:
                items = [f'"{p.attribute}"', empty]
                out.append(wrapped("self.register_buffer", items, "", "        "))
            else:
                out.append(wrapped(f"self.{p.attribute} = nn.Parameter", [empty], "", "        "))
        if self.signature.anchor is None and (self.signature.states or self.signature.kept):
            items = ['"_like"', "torch.empty(0, device=device, dtype=dtype)", "persistent=False"]
            out.append(wrapped("self.register_buffer", items, "", "        "))
        return out

    @property
    def lists(self) -> list[str]:
        """Class attributes that list parameters."""
        found = [("float32_parameters", self.signature.kept)]
        found.append(("no_weight_decay", self.signature.undecayed))
        out = []
        for name, items in found:
            head = f"{name}: ClassVar[tuple[str, ...]] = "
            quoted = [f'"{item}"' for item in items]
            out.append(f"    {head}{tuple_text(quoted)}")
        along = ", ".join(f'"{name}": {axis}' for name, axis in self._head_axes.items())
        out.append(f"    head_axes: ClassVar[Mapping[str, int]] = {{{along}}}")
        return out

    @property
    def _head_axes(self) -> dict[str, int]:
        """What is stored with an axis of heads, the first that is declared, and where it has it."""
        heads = head_axis(self.plan)
        kept = {p.attribute: axes for p, axes in self._stored}
        return {name: axes.index(heads) for name, axes in kept.items() if heads in axes}

    @property
    def _stored(self) -> Iterator[tuple[ParameterText, tuple[Axis, ...]]]:
        """Parameters and buffers, each with the axes that it is stored over."""
        tensors = (*self.plan.params, *self.plan.buffers)
        return zip(self.signature.parameters, map(stored_axes, tensors), strict=True)

    @property
    def output_shape(self) -> str:
        """Sizes of the axes of the output, as a tuple."""
        axes = self.plan.array(self.plan.output).axes
        return tuple_text([f"self.{self.signature.size(a)}" for a in axes])

    @property
    def reset(self) -> list[str]:
        """Statements that draw every parameter afresh."""
        return [line for p in self.signature.parameters for line in p.init]

    @property
    def sizes_repr(self) -> str:
        """The `return` of a text that names the sizes."""
        sizes = [f"{z.name}={{self.{z.name}}}" for z in self.signature.sizes]
        return returned_text(sizes, " " * 8)

    @property
    def steps(self) -> bool:
        """Whether there is a next token to mix: nothing runs backwards in time."""
        return self.plan.causal

    # --- forward and step ------------------------------------------------------------------------

    @property
    def returns(self) -> str:
        """What the docstring of `forward` says of its result."""
        output = self.signature.output
        return f"{output.name}, {output.meaning}, and the state if asked for."

    @property
    def refuses(self) -> str:
        """What the docstring of `forward` says of the calls that it refuses."""
        if not self.steps:
            return "ValueError: a wrong shape, device, mode, chunk or pack, or a state (E-STEP)."
        return "ValueError: a wrong shape, device, mode, chunk or pack, or a state of another spec."

    @property
    def start(self) -> str:
        """Makes the state before the first token."""
        like = self.signature.like
        items = ["batch", f"{like}.device", f"{like}.dtype"]
        return wrapped("state = self.initial_state", items, "", "            ")

    @property
    def mix_def(self) -> str:
        """The `def` line of the functional form with the layer's parameters."""
        taken = (*self.signature.input_names, *(t.name for t in self.signature.states))
        flags = [f"{flag}: bool = True" for flag in modes(self.plan).flags]
        options = ["lengths: Tensor | None = None", "*", "mode: str", "chunk: int", *flags]
        options += ["ranks: _Ranks | None = None"] if self.distributed else []
        params = ["self", *(f"{name}: Tensor" for name in taken), *options]
        return wrapped("def _mix", params, " -> tuple[Tensor, ...]:", "    ")

    @property
    def mix(self) -> str:
        """Its body."""
        inputs = zip(self.signature.input_names, (t.axes for t in self.plan.inputs), strict=True)
        arguments = [
            *(self._own(name, axes, name) for name, axes in inputs),
            *(
                p.form.format(self._own(p.stored, axes, f"_local({p.stored})"))
                for p, axes in self._stored
            ),
            # A state that all heads read came of what was replicated: no gradient is summed twice.
            *(t.name for t in self.signature.states),
            *(f"{n}=self.{n}" for n in self.given),
            *(f"{n}={n}" for n in ("mode", "chunk", "lengths", *modes(self.plan).flags)),
            *(["ranks=ranks"] if self.distributed else []),
        ]
        return wrapped(f"return {self.signature.function}", arguments, "", "        ")

    def _own(self, text: str, axes: tuple[Axis, ...], local: str) -> str:
        """Text of what a process computes with: of a tensor, or of its share of the heads."""
        if self.heads is None:
            return text
        return local if self.heads in axes else f"_replicated({text}, self._mesh)"

    @property
    def bound(self) -> str:
        """Names `_mix` with the options of a call, and what gives it tokens."""
        flags = modes(self.plan).flags
        options = [f"{n}={n}" for n in ("mode", "chunk", *flags)]
        mix = wrapped("mix = partial", ["self._mix", *options], "", "        ")
        if not self.steps:
            return mix
        return f"        by, mode = _tokens_by(State, MODES, mode)\n{mix}"

    @property
    def call(self) -> str:
        """Calls it."""
        inputs = tuple_text(self.signature.input_names)
        states = tuple_text([f"state.{t.name}" for t in self.signature.states])
        arguments = ["mix", inputs, states, "mask", "cu_seqlens"]
        if self.distributed and self.not_distributed is None:
            arguments = ["by" if self.steps else "_by_rows", "mix", "group", *arguments[1:]]
            return wrapped("y, *states = _by_ranks", arguments, "", "        ")
        head = "y, *states = by" if self.steps else "y, *states = _by_rows"
        return wrapped(head, arguments, "", "        ")

    @property
    def not_distributed(self) -> str | None:
        """Why processes cannot share a sequence, as a clause; None where they can."""
        return refusal(self.plan)

    @property
    def not_distributed_text(self) -> list[str]:
        """The message of the error, as literals that make lines of text."""
        return literals(f"no group: {self.not_distributed}", WIDTH - 16)

    @property
    def crossing(self) -> list[str]:
        """What crosses from process to process, as literals that make lines of text."""
        lines = [self.not_distributed] if self.not_distributed else list(crossing(self.plan))
        texts = [f"across ranks: {x}" for x in lines or ["nothing: outputs need no other token"]]
        out = [x for text in texts[:-1] for x in literals(f"{text}\\n", WIDTH - 12)]
        return [*out, *literals(texts[-1], WIDTH - 12)]

    # --- explain ---------------------------------------------------------------------------------

    @property
    def choices(self) -> list[str]:
        """The choice of a mode for the only scan; of several, what each one's takes."""
        scans = [
            k for k in self.plan.kernels if isinstance(k, Scan | Attention | AllPairs | Recurrence)
        ]
        several = len({s.form for s in scans}) > 1
        if len(scans) == 1:
            shape = ["length", "batch", *self._tile(scans[0])]
            given = ["mode", modes(self.plan).default_chunk, "torch.device(device).type", *shape]
            return [wrapped("mode, chunk, times = _mode", given, "", "        ")]
        out = []
        for s in scans:
            tile = tuple_text(self._tile(s))
            name = s.output if isinstance(s, Attention | AllPairs) else s.name
            out.append(f'("{name}", _{f"{s.form.value}_" if several else ""}mode, {tile})')
        return out

    def _tile(self, scan: Scan | Attention | AllPairs | Recurrence) -> list[str]:
        """Sizes of the operator's state: heads, keys and channels, each one number, or the axes."""
        if isinstance(scan, Recurrence):
            return [" + ".join(self._product(s.axes) for s in scan.states)]
        if isinstance(scan, AllPairs):
            return [f"self.{self.signature.size(a)}" for a in scan.axes]
        if isinstance(scan, Attention):
            return [self._product(axes) for axes in (scan.heads, scan.keys, scan.channels)]
        channels = " + ".join(self._product(c.channels) for c in scan.columns)
        match FORMS[scan.form].layout:
            case Layout.GROUPED:
                return [self._product(scan.heads), self._product(scan.keys), channels]
            case Layout.RESPONSES:
                return [self._product(scan.heads), self._product(scan.keys)]
            case Layout.MIXED:
                return [self._product(scan.heads), channels]
            case _:
                axes = (*scan.heads, *scan.keys, *scan.columns[0].channels)
                return [f"self.{self.signature.size(a)}" for a in axes]

    def _product(self, axes: tuple[Axis, ...]) -> str:
        return " * ".join(f"self.{self.signature.size(a)}" for a in axes) or "1"

    @property
    def step_def(self) -> str:
        """The `def` line of `step`."""
        inputs = [f"{n}: Tensor" for n in self.signature.input_names]
        options = ["*", "in_place: bool = False", 'mode: str = "recurrent"']
        params = ["self", *inputs, "state: State", *options]
        return wrapped("def step", params, " -> tuple[Tensor, State]:", "    ")

    @property
    def step_doc(self) -> str:
        """The first line of the docstring of `step`, opened."""
        if not self.steps:
            return '        """Refuses: an output needs all tokens to come.'
        cost = "a cost that grows with what it keeps" if self.grows else "constant cost"
        return f'        """Mixes one token, at {cost}.'

    @property
    def grows(self) -> bool:
        """Whether what is kept of the past grows with it."""
        return any(r.grows for r in self.plan.registers)

    @property
    def place(self) -> str:
        """What the docstring of `step` says of the place of the state after the token."""
        if self.grows:
            where = "token behind what `state` keeps, where it has room (`reserve`)"
        else:
            where = "state after the token where `state` lies, and to return that"
        return f"in_place: whether to write the {where}; refused where gradients are asked for."

    @property
    def kept(self) -> str:
        """The tensors of the state that is given, as a tuple."""
        return tuple_text([f"state.{t.name}" for t in self.signature.states])

    @property
    def after(self) -> str:
        """The state after the token."""
        grows = ", GROWING" if self.grows else ""
        return f"_overwrite(state, states{grows}) if in_place else State(*states)"

    @property
    def overwrites(self) -> str:
        """A statement that refuses to overwrite what gradients need."""
        inputs = [*self.signature.input_names, f"*{self.kept}", "*self.parameters()"]
        return wrapped("_refuse_gradients", inputs, "", " " * 12)

    @property
    def token(self) -> list[str]:
        """The inputs of `step`, for its docstring."""
        pairs = zip(self.signature.inputs, self.plan.inputs, strict=True)
        return [f"{i.name}: `{layout(('B',), t.axes)}`." for i, t in pairs]

    @property
    def step_returns(self) -> str:
        """The result of `step`, for its docstring."""
        output = self.signature.output
        shape = layout(("B",), self.plan.array(self.plan.output).axes)
        return f"{output.name}, `{shape}`, and the state after the token."

    @property
    def step_call(self) -> list[str]:
        """Mixes a sequence of one token."""
        inputs = self.signature.input_names
        checked = [*inputs, "state", "None"]
        where = ["        if in_place and not exact:", "            mode = _IN_PLACE"]
        options = ["self._mix", "mode=mode", f"chunk={modes(self.plan).default_chunk}"]
        return [
            *(f"        {n} = {n}.unsqueeze(1)" for n in inputs),
            wrapped("self._check", checked, "", "        "),
            "        by, mode = _tokens_by(State, MODES, mode)",
            *(where if self.in_place or self.grows else ()),
            wrapped("mix = partial", options, "", "        "),
            wrapped(
                "y, *states = by",
                ["mix", tuple_text(inputs), self.kept, "None", "None"],
                "",
                "        ",
            ),
        ]

    @property
    def steps_def(self) -> str:
        """The `def` line of `step_k`."""
        inputs = [f"{n}: Tensor" for n in self.signature.input_names]
        result = f" -> tuple[Tensor, {'States' if self.steps else 'Any'}]:"
        params = ["self", *inputs, "state: State", "*", 'mode: str = "recurrent"']
        return wrapped("def step_k", params, result, "    ")

    @property
    def steps_returns(self) -> str:
        """The result of `step_k`, for its docstring."""
        output = self.signature.output
        return f"{output.name}, {output.meaning}, and the states."

    @property
    def steps_call(self) -> list[str]:
        """Mixes a sequence, and keeps the states after all of its tokens."""
        inputs = self.signature.input_names
        lines = [wrapped("self._check", [*inputs, "state", "None"], "", "        ")]
        lines.append(f"        _some({self.signature.like})")
        grows = ["GROWING"] if self.grows else []
        stepped = ["partial(self.step, mode=mode)", tuple_text(inputs), "state", *grows]
        if not self.at_once:
            return [*lines, wrapped("y, *states = _one_by_one", stepped, "", "        ")]
        states = [f"state.{t.name}" for t in self.signature.states]
        chunk = f"chunk={modes(self.plan).default_chunk}"
        arguments = [*inputs, *states, "mode=_EACH", chunk]
        return [
            *lines,
            "        if _is_exact(mode):",
            wrapped("y, *states = _one_by_one", stepped, "", " " * 12),
            "        else:",
            wrapped("y, *states = self._mix", arguments, "", " " * 12),
        ]

    # --- checks ----------------------------------------------------------------------------------

    @property
    def check_def(self) -> str:
        """The `def` line of `_check`."""
        inputs = [f"{n}: Tensor" for n in self.signature.input_names]
        rest = ["state: State | None", "cu_seqlens: Tensor | None"]
        params = ["self", *inputs, *rest]
        return wrapped("def _check", params, " -> None:", "    ")

    @property
    def any_narrow(self) -> bool:
        """Whether inputs may be of any dtype that sums of the parameters' dtype are made of."""
        return self.signature.anchor is None and bool(self.signature.kept)

    @property
    def input_checks(self) -> list[str]:
        """Statements that hold each input against its shape, and its dtype against the weights."""
        first = self.signature.like
        like = self.signature.anchor or next((f"self.{n}" for n in self.signature.kept), first)
        lines = []
        if like.startswith("self.") and len(self.plan.inputs) > 1:
            lines.append(f"        like = {like}")
            like = "like"
        for t, i in zip(self.plan.inputs, self.signature.inputs, strict=True):
            shape = ", ".join(f"self.{self.signature.size(a)}" for a in t.axes)
            shape += "," if len(t.axes) == 1 else ""
            items = [f'"{i.name}"', i.name, f'"{i.layout}"', f"({shape})", like]
            items += ["wide=True"] if self.any_narrow else []
            lines.append(wrapped("_fits", items, "", "        "))
            if i.name != first:
                lines.append(f"        if {i.name}.shape[:2] != {first}.shape[:2]:")
                lines.append(
                    f'            raise ValueError("{i.name} and {first} differ in B or L")'
                )
                if self.any_narrow:
                    why = (
                        f"{i.name} is {{{i.name}.dtype}}, want {{{first}.dtype}}: cast one of them"
                    )
                    cast = f"not _autocast({first})"
                    lines.append(f"        if {i.name}.dtype != {first}.dtype and {cast}:")
                    lines.append(f'            raise TypeError(f"{why}")')
        return lines
