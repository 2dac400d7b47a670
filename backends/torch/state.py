"""The state of an emitted module: its class, its value before the first token, its shapes."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.tree import Axis, Field
from dsfc.plan.ir import Plan, Register, StateTensor
from dsfc.plan.pairs_ir import AllPairs, Attention

from .header import gauge
from .layout import WIDTH, Call, tuple_text, wrapped
from .signature import Signature
from .sizes import size_printer


@dataclass(frozen=True, slots=True)
class StateText:
    """What `state.py.j2` is filled with, and the layer where it makes a state or checks one.

    Attributes:
        plan: the plan.
        signature: the module's names.
    """

    plan: Plan
    signature: Signature

    @property
    def gauge(self) -> str:
        """The gauge that the tensors are stored in, in words."""
        return gauge(self.plan)

    @property
    def grows(self) -> tuple[str, ...]:
        """Names of the tensors that keep every token, `[B, T, ...]`; none of most mixers."""
        return tuple(self.signature.identifier(r.name) for r in self.plan.registers if r.grows)

    @property
    def growing(self) -> str:
        """The names of the tensors that keep every token, as items of a tuple."""
        comma = "," if len(self.grows) == 1 else ""
        return ", ".join(f'"{name}"' for name in self.grows) + comma

    @property
    def growing_argument(self) -> str:
        """The last argument of functions of `States`: the names of what grows, or nothing."""
        return ", GROWING" if self.grows else ""

    @property
    def layout(self) -> str:
        """The class's table: the axes of each tensor, the rule of its dtype, and its role."""
        present = {k.present for k in self.plan.kernels if isinstance(k, Attention | AllPairs)}
        rows = [self._row(s.name, ("B",), s, "accumulator", "whole") for s in self.plan.states]
        for r in self.plan.registers:
            role = ("seen" if r.buffer in present else "tokens") if r.grows else "whole"
            rule = "accumulator" if r in self.plan.maxima else "input"
            rows.append(self._row(r.name, ("B", "T" if r.grows else "K"), r, rule, role))
        head = "    layout: ClassVar[dict[str, tuple[tuple[str, ...], str, str]]] = {"
        return "\n".join([head, *rows, "    }"]) if rows else f"{head}}}"

    def _row(
        self, name: str, lead: tuple[str, ...], t: StateTensor | Register, rule: str, role: str
    ) -> str:
        """An item of the table: real numbers have the dtype of a rule, complex ones their own."""
        axes = tuple_text([f'"{a}"' for a in (*lead, *(x.name for x in t.axes))])
        rule = "complex" if _is_complex(t) else rule
        return f'        "{self.signature.identifier(name)}": ({axes}, "{rule}", "{role}"),'

    @property
    def columns(self) -> str:
        """Names of the tensors that a gauge changes, as a tuple; empty where there are none."""
        names = [f'"{self.signature.identifier(s.name)}"' for s in self.plan.states]
        return tuple_text(names) if names else ""

    @property
    def maxima(self) -> tuple[str, ...]:
        """Names of the maxima that states are stored over, as items of a tuple."""
        return tuple(f'"{self.signature.identifier(r.name)}"' for r in self.plan.references)

    @property
    def lowest(self) -> bool:
        """Whether a tensor of the state is a running maximum."""
        return bool(self.plan.maxima)

    @property
    def restored(self) -> str:
        """Arguments of what makes a state of tensors by name."""
        items = ["cls", "kept", *([self.columns] if self.columns else [])]
        zeros = []
        for r in self.plan.references:
            over = next(s for s in self.plan.states if set(r.axes) <= set(s.axes))
            places = tuple(1 + over.axes.index(a) for a in r.axes)
            name, state = (self.signature.identifier(x.name) for x in (r, over))
            zeros.append(f'"{name}": ("{state}", {places})')
        return ", ".join([*items, *([f"maxima={{{', '.join(zeros)}}}"] if zeros else [])])

    @property
    def initial(self) -> str:
        """The body of the layer's `initial_state`: zeros, sums in the accumulation dtype.

        Running maxima are kept in that dtype too, and start below all numbers.
        """
        if not self.signature.states:
            return "        return State()"
        lines = []
        like = self.signature.anchor or "self._like"
        lines.append(f"        dtype = {like}.dtype if dtype is None else dtype")
        lines.append(f"        device = {like}.device if device is None else device")
        wide = "_accumulator(dtype)"
        wider = (r for r in self.plan.registers if _is_complex(r) or r in self.plan.maxima)
        kept = [*self.plan.states, *wider]
        if len(kept) > 1:
            lines.append(f"        wide = {wide}")
            wide = "wide"
        arguments = [
            self._zeros(s.name, self._sizes(s.axes), _dtype(s, wide, wide))
            for s in self.plan.states
        ]
        arguments += [
            self._zeros(r.name, self._register_sizes(r, "0"), _dtype(r, wide, "dtype"))
            if r not in self.plan.maxima
            else self._full(r, wide)
            for r in self.plan.registers
        ]
        lines.append(wrapped("return State", arguments, "", "        "))
        return "\n".join(lines)

    @property
    def shapes(self) -> str:
        """Checks each tensor by name, value and axes behind the batch."""
        items = [self._shape(s.name, self._sizes(s.axes)) for s in self.plan.states]
        # All that grow have as many tokens as the first of them.
        tokens = f"*state.{self.grows[0]}.shape[1:2]" if self.grows else ""
        items += [self._shape(r.name, self._register_sizes(r, tokens)) for r in self.plan.registers]
        lone = "," if len(items) == 1 else ""
        context = ["batch", f"{self.signature.like}.device"]
        line = f"        _state_fits({', '.join(context)}, ({', '.join(map(str, items))}{lone}))"
        if len(line) <= WIDTH:
            return line
        shapes = f"        shapes = ({items[0]},)"
        if lone == "" or len(shapes) > WIDTH:
            shapes = wrapped("shapes = ", items, "", "        ")
        return f"{shapes}\n        _state_fits({', '.join(context)}, shapes)"

    def _zeros(self, name: str, sizes: list[str], dtype: str) -> Call:
        items = ("batch", *sizes, "device=device", f"dtype={dtype}")
        return Call(f"{self.signature.identifier(name)}=torch.zeros", items)

    def _full(self, r: Register, dtype: str) -> Call:
        sizes = ", ".join(["batch", *self._register_sizes(r, "0")])
        items = (f"({sizes})", "LOWEST", "device=device", f"dtype={dtype}")
        return Call(f"{self.signature.identifier(r.name)}=torch.full", items)

    def _shape(self, name: str, sizes: list[str]) -> Call:
        lone = "," if len(sizes) == 1 else ""
        ident = self.signature.identifier(name)
        return Call("", (f'"{ident}"', f"state.{ident}", f"({', '.join(sizes)}{lone})"))

    def _sizes(self, axes: tuple[Axis, ...]) -> list[str]:
        return [f"self.{self.signature.size(a)}" for a in axes]

    def _register_sizes(self, register: Register, tokens: str) -> list[str]:
        if register.grows:
            return [tokens, *self._sizes(register.axes)]
        printer = size_printer(self.plan, self.signature.identifier, "self.")
        texts = [printer.text(e) for e in register.lengths]
        length = texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"
        return [length, *self._sizes(register.axes)]


def _dtype(tensor: StateTensor | Register, wide: str, real: str) -> str:
    """Text of the dtype a tensor of the state is kept in."""
    return f"torch.promote_types({wide}, torch.complex64)" if _is_complex(tensor) else real


def _is_complex(tensor: StateTensor | Register) -> bool:
    return tensor.field is Field.COMPLEX
