"""The layer of an emitted module: a mixer, a norm and a gate behind it, and an output map."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.tree import Axis
from dsfc.layer_parts import LayerSignature
from dsfc.plan.heads import head_axis
from dsfc.plan.ir import Plan
from dsfc.plan.whole_layer import WIDTH, Mapped, WholeLayer, fla_layer_name, layer_name

from .header import about
from .layout import paragraph, tuple_text, wrapped
from .modes import modes
from .parameters import start
from .signature import Signature
from .sizes import SizeText

OWN = frozenset(
    {WIDTH, "norm", "gate", "bias", "width", "axes", "make", "mixer", "gate_proj", "out_proj"}
)
"""Names in the constructor of a layer and of its parts, which nothing of a mixer may take."""

_OWN_FOR_FLA = frozenset({"hidden_size", "num_heads", "layer_idx", "mode", "options", "of_fla"})
"""Names that a layer has besides where fla calls it."""

_INDENT = " " * 8


@dataclass(frozen=True, slots=True)
class WholeLayerText:
    """What `whole_layer.py.j2` is filled with.

    Attributes:
        plan: of the mixer.
        signature: the module's names.
        whole: how the layer stands around the mixer.
        steps: whether there is a next token to mix.
        distributed: whether processes may share a sequence.
    """

    plan: Plan
    signature: Signature
    whole: WholeLayer
    steps: bool
    distributed: bool

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return layer_name(self.signature.class_name)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the layers, first the one that is called as its mixer."""
        return (self.class_name, self.fla_class_name) if self.for_fla else (self.class_name,)

    @property
    def title(self) -> str:
        """The docstring's first line, opened."""
        return paragraph(f"{about(self.plan)} With an output map.", "    ", '    """')

    @property
    def formula(self) -> str:
        """What the layer computes, for its docstring."""
        names = iter(self.maps)
        inputs = ", ".join("u" if m is None else f"{next(names)} u" for m in self.whole.inputs)
        text = f"y = out_proj(norm({self.signature.class_name}({inputs})) * gate(gate_proj u))"
        return paragraph(f"{text}, norm and gate only where asked for.", "    ")

    @property
    def _own(self) -> frozenset[str]:
        return OWN | _OWN_FOR_FLA if self.for_fla else OWN

    # --- sizes -----------------------------------------------------------------------------------

    @property
    def sizes(self) -> list[SizeText]:
        """Size arguments besides the width."""
        return [z for z in self.signature.sizes if z.name != self._width]

    @property
    def _width(self) -> str | None:
        """The mixer's argument that is the width."""
        return None if self.whole.width is None else self.signature.identifier(self.whole.width)

    def argument(self, size: SizeText) -> str:
        """Returns the declaration of a size."""
        return f"{self.name(size)}{size.argument.removeprefix(size.name)}"

    def name(self, size: SizeText) -> str:
        """Returns what the layer calls a size: as the mixer does, unless the name is its own."""
        taken = {z.name for z in self.signature.sizes}
        name = size.name
        while name in self._own or (name != size.name and name in taken):
            name += "_"
        return name

    @property
    def make_mixer(self) -> str:
        """Makes the mixer."""
        items = [] if self._width is None else [f"{self._width}={WIDTH}"]
        items += [f"{z.name}={self.name(z)}" for z in self.sizes]
        items += ["device=device", "dtype=dtype"]
        return wrapped(f"self.mixer = {self.signature.class_name}", items, "", _INDENT)

    # --- maps of the input -----------------------------------------------------------------------

    @property
    def maps(self) -> dict[str, Mapped]:
        """Names of the maps to inputs of the mixer, and what each gives."""
        taken = self._own | {self.name(z) for z in self.signature.sizes}
        out: dict[str, Mapped] = {}
        for m in self.whole.inputs:
            if m is None:
                continue
            map_ = m.map
            name = f"{m.tensor.name}_proj" if map_ is None else map_.name
            name = self.signature.identifier(name)
            while name in taken or name in out:
                name += "_"
            out[name] = m
        return out

    @property
    def make_maps(self) -> list[str]:
        """Statements that make them."""
        out = []
        for name, m in self.maps.items():
            sizes = " * ".join(self._sizes(m.tensor.axes)) or "1"
            items = [WIDTH, sizes, "bias=bias", "device=device", "dtype=dtype"]
            out.append(wrapped(f"self.{name} = nn.Linear", items, "", _INDENT))
        return out

    @property
    def starts(self) -> list[str]:
        """Statements that draw the maps that are the mixer's own as the spec says."""
        out = []
        for name, m in self.maps.items():
            if m.map is None:
                continue
            target = f"self.{name}.weight"
            if len(m.tensor.axes) != 1:
                sizes = ", ".join(self._sizes(m.tensor.axes))
                out.append(f"weight = {target}.view({sizes}{', ' if sizes else ''}-1)")
                target = "weight"
            out += start(
                self.plan, m.map, lambda n: f"mixer.{self.signature.identifier(n)}", target
            )
        return out

    @property
    def mapped(self) -> list[str]:
        """The inputs of the mixer, a line each."""
        names = iter(self.maps)
        lines = []
        for m in self.whole.inputs:
            if m is None:
                lines.append("u")
                continue
            shape = ", ".join(["*lead", *self._sizes(m.tensor.axes, "mixer")])
            text = f"self.{next(names)}(u)"
            lines.append(text if len(m.tensor.axes) == 1 else f"{text}.reshape({shape})")
        return lines

    @property
    def reshapes(self) -> bool:
        """Whether a map gives other axes than one."""
        return any(len(m.tensor.axes) != 1 for m in self.maps.values())

    @property
    def own_maps(self) -> list[str]:
        """Items of a dictionary: maps of the mixer's own by name, and the axes that each gives."""
        return [
            f'"{self.signature.identifier(m.map.name)}": '
            f"(self.{name}, {tuple_text(self._sizes(m.tensor.axes))})"
            for name, m in self.maps.items()
            if m.map is not None
        ]

    def _sizes(self, axes: tuple[Axis, ...], mixer: str = "self.mixer") -> list[str]:
        return [f"{mixer}.{self.signature.size(a)}" for a in axes]

    # --- the output ------------------------------------------------------------------------------

    @property
    def _axes(self) -> tuple[Axis, ...]:
        return self.plan.array(self.plan.output).axes

    @property
    def normed(self) -> str:
        """Sizes of the axes that the norm is over: those of a head, or all where all are heads."""
        axes = tuple(a for a in self._axes if not a.heads) or self._axes
        return tuple_text(self._sizes(axes))

    @property
    def heads_first(self) -> list[str]:
        """A statement that puts the axes of heads before the others; none where they are."""
        at = [i for i, a in enumerate(self._axes) if a.heads]
        if at == list(range(len(at))):
            return []
        count = len(self._axes)
        source, target = ([str(i - count) for i in places] for places in (at, range(len(at))))
        return [f"        y = y.movedim({tuple_text(source)}, {tuple_text(target)})"]

    @property
    def joined(self) -> list[str]:
        """A statement that makes one axis of those of the output; none where it is one."""
        count = len(self._axes)
        if count == 1:
            return []
        return [f"        y = {f'y.flatten({-count})' if count else 'y.unsqueeze(-1)'}"]

    @property
    def norm(self) -> str:
        """The norm unless a user says otherwise, as a literal."""
        return _literal(self.whole.parts.norm)

    @property
    def gate(self) -> str:
        """The gate unless a user says otherwise, as a literal."""
        return _literal(self.whole.parts.gate)

    @property
    def cut(self) -> list[str]:
        """Items of a dictionary: maps of the layer that heads lie along, and on which axis."""
        maps = {name: m.tensor.axes for name, m in self.maps.items()}
        heads = head_axis(self.plan)
        along = {name: 0 for name, axes in maps.items() if axes and axes[0] == heads}
        if heads in self._axes:
            along |= {"gate_proj": 0, "out_proj": 1}
        return [f'"{name}": {axis}' for name, axis in along.items()]

    # --- tensor parallelism ----------------------------------------------------------------------

    @property
    def size_of_heads(self) -> str:
        """Attribute of the mixer with the number of heads that processes share out."""
        return self.signature.size(self._heads)

    @property
    def _heads(self) -> Axis:
        assert self.whole.heads is not None
        return self.whole.heads

    @property
    def styles(self) -> list[str]:
        """Items of a dictionary: the style of each map to the mixer."""
        along = {name: self._heads in m.tensor.axes for name, m in self.maps.items()}
        return [
            f'"{name}": {"ColwiseParallel()" if cut else "_WholeParallel(Replicate())"}'
            for name, cut in along.items()
        ]

    @property
    def joined_by_norm(self) -> bool:
        """Whether a norm would be over the heads."""
        return all(a.heads for a in self._axes)

    @property
    def normed_heads(self) -> int:
        """The axis of heads in what the norm gets, from the last."""
        heads = [a for a in self._axes if a.heads]
        return heads.index(self._heads) - len(self._axes)

    # --- as fla calls it -------------------------------------------------------------------------

    @property
    def for_fla(self) -> bool:
        """Whether there is a class that is called as layers of flash-linear-attention are."""
        return self.whole.signature is LayerSignature.FLA

    @property
    def fla_class_name(self) -> str:
        """Name of this class."""
        return fla_layer_name(self.signature.class_name)

    @property
    def fla_title(self) -> str:
        """Its docstring's first line, opened."""
        return paragraph(f"{about(self.plan)} As a layer of fla.", "    ", '    """')

    @property
    def fla_about(self) -> str:
        """The purpose of the class, for its docstring."""
        text = (
            "Made and called as layers of flash-linear-attention (fla) are, so that it takes the "
            "place of `attn` in blocks of fla's models. Its parameters are those of "
            f"`{self.class_name}`, under the same names."
        )
        return paragraph(text, "    ")

    @property
    def fla_heads(self) -> SizeText | None:
        """The size that fla calls `num_heads`; None where no argument is a number of heads."""
        axis = head_axis(self.plan)
        name = None if axis is None else self.signature.identifier(axis.name)
        return next((z for z in self.sizes if z.name == name), None)

    @property
    def fla_heads_argument(self) -> str:
        """Its declaration."""
        assert self.fla_heads is not None
        return f"num_heads{self.fla_heads.argument.removeprefix(self.fla_heads.name)}"

    @property
    def chunk(self) -> str:
        """The default of `chunk`."""
        return str(modes(self.plan).default_chunk)


def _literal(name: str | None) -> str:
    return "None" if name is None else f'"{name}"'
