"""Plan → text of a torch module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from dsfc.plan.ir import Form, Plan, Pointwise, Register, Scan
from dsfc.primitives.build import walk
from dsfc.primitives.declarations import Tensor
from dsfc.primitives.expr import Axis, Rename

from .body import FIR, LAST, Body
from .calls import ScanCall, is_shared
from .layout import WIDTH, Call, fitted, paragraph, returned_text, wrapped
from .matrix import MatrixSkeleton
from .parameters import ParameterText, parameters, size_printer, sizes, stored_axes
from .reference import HELPERS, ReferenceText
from .selective import SelectiveSkeleton
from .skeletons import ElementwiseSkeleton, Skeleton

# Words of the module's own text, besides Python's: no name of a spec may take them.
RESERVED = frozenset(
    """
    torch nn F Tensor pytree math dataclass Callable Any ClassVar State SPEC
    NAMESPACE MODES CHUNK CROSSOVER register_flop_formula reference self state states mode chunk
    return_state dtype wide device batch length training forward backward step explain
    initial_state reset_parameters extra_repr i rows past before onward after lag
    axes name gauge spec
    """.split()
) | frozenset(
    # What `nn.Module` has already; parameters and sizes are attributes of the layer.
    """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double
    dump_patches eval float get_buffer get_extra_state get_parameter get_submodule half ipu
    load_state_dict modules mtia named_buffers named_children named_modules named_parameters
    parameters register_backward_hook register_buffer register_forward_hook
    register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module
    register_parameter register_state_dict_post_hook register_state_dict_pre_hook requires_grad_
    set_extra_state set_submodule share_memory state_dict to to_empty train type xpu zero_grad
    """.split()
)
# From how many tokens on the chunked mode is faster than one token after another, measured on a
# CPU; the least of a module's scans counts.
CROSSOVER = {Form.MATRIX: 4, Form.SELECTIVE: 4, Form.ELEMENTWISE: 128}
# Tokens per chunk that are fastest, measured likewise.
CHUNK = {Form.MATRIX: 64, Form.SELECTIVE: 32, Form.ELEMENTWISE: 64}


@cache
def _environment() -> Environment:
    folder = files(__package__)

    def source(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    return Environment(
        loader=FunctionLoader(source),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the result is Python; names are identifiers, texts are made safe below
    )


def rule(title: str) -> str:
    """Returns a comment line that heads a section."""
    return f"# --- {title} ".ljust(WIDTH, "-")


def entry(text: str, indent: int) -> str:
    """Returns an item of a docstring's list."""
    return paragraph(text, " " * (indent + 4), " " * indent)


def plain(text: str) -> str:
    """Returns a spec's text as it may stand in a comment or docstring: printable, no escapes."""
    return "".join(c if c.isprintable() and c not in '\\"' else "?" for c in text)


def render_module(
    plan: Plan,
    identity: Any,  # noqa: ANN401 - an Identity; backends do not import emit
    identifier: Callable[[str], str],
    class_name: str,
    function_name: str,
) -> str:
    """Returns the module's text; see `dsfc.emit.backend.Backend`."""
    return _Module(plan, identity, identifier, class_name, function_name).text()


class _Module:
    """Everything `module.py.j2` is filled with."""

    def __init__(
        self,
        plan: Plan,
        identity: Any,  # noqa: ANN401 - as in `render_module`
        identifier: Callable[[str], str],
        class_name: str,
        function_name: str,
    ) -> None:
        self.plan = plan
        self.identity = identity
        self.ident = identifier
        self.cls = class_name
        self.function = function_name
        self.arrays = {b.name: b for b in plan.arrays}
        self.skeletons = _skeletons(plan, self.arrays)
        self.scans = bool(self.skeletons)
        self.inputs = [_input(t, identifier) for t in plan.inputs]
        self.input_names = [i["name"] for i in self.inputs]
        self.like = self.input_names[0]
        self.sizes = sizes(plan, identifier)
        self.parameters = parameters(plan, identifier)
        self.output = identifier(plan.result)
        shape = self.arrays[plan.output].axes
        self.output_shape = _layout(("B", "L"), shape)

    def text(self) -> str:
        """Returns the module's text."""
        environment = _environment()
        environment.globals["rule"] = rule
        environment.globals["entry"] = entry
        self.fill()
        text = environment.get_template("module.py.j2").render(m=self, op_shared=self._op_shared())
        return "\n".join(map(fitted, text.rstrip("\n").split("\n"))) + "\n"

    def fill(self) -> None:
        """Prints the functional form and all that depends on what it uses."""
        next_states: dict[str, str] = {}
        by_name = {s.scan.name: s for s in self.skeletons}
        body: Body

        def call(scan: Scan) -> list[str]:
            printer = ScanCall(by_name[scan.name], self.ident, body.size, self.like, body.unused)
            return printer.lines(next_states)

        body = Body(self.plan, self.ident, self.like, call)
        text = body.text()
        self.body = text.lines
        self.result = text.result
        self.next_states = [next_states[s.name] for s in self.plan.states]
        self.registers = text.registers
        helpers = [FIR] * text.filters + [LAST] * bool(text.registers)
        self.functional_helpers = [helper.rstrip("\n") for helper in helpers]
        self.uses_wide = any("wide" in line for line in self.body)
        reference = ReferenceText(self.plan, self.ident, self.like)
        self._reference = reference
        self.sections = list(self._sections())

    # --- header ----------------------------------------------------------------------------------

    @property
    def about(self) -> str:
        """The mixer's name and what its spec says it is."""
        doc = f": {plain(self.plan.doc)}" if self.plan.doc else ""
        return f"{self.plan.name}{doc}".rstrip(".") + "."

    @property
    def title(self) -> str:
        return paragraph(self.about, "", '"""')

    @property
    def class_title(self) -> str:
        return paragraph(f"{self.about} As a layer.", "    ", '    """')

    @property
    def doc(self) -> list[str]:
        """Paragraphs of the docstring: source, derived system, structure."""
        system = "\n".join(_indented(self.plan.system))
        facts = [f"{line.rstrip('.')}." for line in plain_lines(self.plan.structure)]
        facts.append(f"Gauge {self.gauge}.")
        facts.append("Λ is the transition, B the batch, L the length; axes: head / key / channel.")
        facts.append(f"Modes {', '.join(self.modes)}, with gradients of all arguments and states.")
        notes = paragraph(" ".join(facts), "")
        out = [f"Derived from {plain(self.identity.source)}:\n\n{system}", notes]
        return out

    @property
    def gauge(self) -> str:
        return self.plan.gauge or "no state"

    @property
    def modes(self) -> list[str]:
        return [m.name for m in self.plan.modes if m.legal]

    @property
    def mode_texts(self) -> str:
        texts = ", ".join(f'"{m}"' for m in self.modes)
        return texts + ("," if len(self.modes) == 1 else "")

    @property
    def mode_names(self) -> str:
        *first, last = ["`auto`", *(f"`{m}`" for m in self.modes)]
        return f"{', '.join(first)} or {last}"

    @property
    def exports(self) -> str:
        names = sorted({self.cls, "State", self.function, "reference"})
        # The class comes first: it is what a reader and `dsfc verify` look for.
        names.remove(self.cls)
        return ", ".join(f'"{n}"' for n in [self.cls, *names])

    @property
    def crossover(self) -> int:
        return min(CROSSOVER[s.scan.form] for s in self.skeletons)

    @property
    def chunk(self) -> str:
        return "CHUNK" if self.scans else "64"

    @property
    def chunk_length(self) -> int:
        return min(CHUNK[s.scan.form] for s in self.skeletons)

    @property
    def imports(self) -> list[str]:
        everything = "\n".join(
            [
                *(*self.body, *self.sections, *self._reference.lines, *self.reset),
                *(self._op_shared(), *self.functional_helpers, *self.reference_helpers),
            ]
        )
        scans = self.scans
        return [
            *(["import math"] if "math." in everything else []),
            *(["from collections.abc import Callable, Iterable"] if scans else []),
            "from dataclasses import dataclass",
            f"from typing import {'Any, ' if scans else ''}ClassVar",
            "",
            "import torch",
            *(["import torch.nn.functional as F"] if "F." in everything else []),
            "from torch import Tensor, nn",
            *(["from torch.utils.flop_counter import register_flop_formula"] if scans else []),
        ]

    # --- module class ----------------------------------------------------------------------------

    @property
    def states(self) -> list[dict[str, str]]:
        out = []
        for s in self.plan.states:
            shape = _layout(("B",), s.axes)
            out.append({"name": self.ident(s.name), "meaning": f"`{shape}`."})
        for r in self.plan.registers:
            shape = _layout(("B", "K"), r.axes)
            name = self.ident(r.name)
            out.append({"name": name, "meaning": f"`{shape}`, the last K values of {r.buffer}."})
        return out

    @property
    def keep_sizes(self) -> list[str]:
        names = [z.name for z in self.sizes]
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
            tuple(sorted((self._size(e.old), self._size(e.new))))
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
    def noted(self) -> list[ParameterText]:
        return [p for p in self.parameters if p.note]

    @property
    def declare(self) -> list[str]:
        out = []
        for p in self.parameters:
            empty = f"torch.empty({p.shape or '()'}, device=device, dtype=dtype)"
            if p.buffer:
                items = [f'"{p.attribute}"', empty]
                out.append(wrapped("self.register_buffer", items, "", "        "))
            else:
                out.append(wrapped(f"self.{p.attribute} = nn.Parameter", [empty], "", "        "))
        return out

    @property
    def reset(self) -> list[str]:
        return [line for p in self.parameters for line in p.init]

    @property
    def sizes_repr(self) -> str:
        return returned_text([f"{z.name}={{self.{z.name}}}" for z in self.sizes], " " * 8)

    @property
    def input_checks(self) -> list[str]:
        """Statements that hold each input against its shape, and its dtype against the weights."""
        like = f"self.{self.parameters[0].attribute}" if self.parameters else self.like
        lines = []
        for t, i in zip(self.plan.inputs, self.inputs, strict=True):
            shape = ", ".join(f"self.{self._size(a)}" for a in t.axes)
            shape += "," if len(t.axes) == 1 else ""
            items = [f'"{i["name"]}"', i["name"], f'"{i["layout"]}"', f"({shape})", like]
            lines.append(wrapped("_fits", items, "", "        "))
            if i["name"] != self.like:
                name = i["name"]
                lines.append(f"        if {name}.shape[:2] != {self.like}.shape[:2]:")
                lines.append(
                    f'            raise ValueError("{name} and {self.like} differ in B or L")'
                )
        return lines

    @property
    def initial_state(self) -> str:
        if not self.states:
            return "        return State()"
        lines = []
        if self.parameters:
            first = f"self.{self.parameters[0].attribute}"
            lines.append(f"        dtype = {first}.dtype if dtype is None else dtype")
            lines.append(f"        device = {first}.device if device is None else device")
        else:
            lines.append("        dtype = torch.get_default_dtype() if dtype is None else dtype")
        wide = "_accumulator(dtype)"
        if len(self.plan.states) > 1:
            lines.append(f"        wide = {wide}")
            wide = "wide"
        arguments = [self._zeros(s.name, [], s.axes, wide) for s in self.plan.states]
        arguments += [
            self._zeros(r.name, [self._register_length(r)], r.axes, "dtype")
            for r in self.plan.registers
        ]
        lines.append(wrapped("return State", arguments, "", "        "))
        return "\n".join(lines)

    def _zeros(self, name: str, lead: list[str], axes: tuple[Axis, ...], dtype: str) -> Call:
        sizes = [*lead, *(f"self.{self._size(a)}" for a in axes)]
        items = ("batch", *sizes, "device=device", f"dtype={dtype}")
        return Call(f"{self.ident(name)}=torch.zeros", items)

    def _size(self, axis: Axis) -> str:
        return self.ident(axis.copy_of or axis.name)

    def _register_length(self, register: Register) -> str:
        printer = size_printer(self.plan, self.ident, "self.")
        texts = [printer.text(e) for e in register.lengths]
        return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"

    @property
    def call(self) -> str:
        arguments = [
            *self.input_names,
            *(p.value for p in self.parameters),
            *(f"state.{t['name']}" for t in self.states),
            "mode=mode",
            "chunk=chunk",
        ]
        return wrapped(f"y, *states = {self.function}", arguments, "", "        ")

    @property
    def start(self) -> str:
        like = self.like
        items = [f"{like}.shape[0]", f"{like}.device", f"{like}.dtype"]
        return wrapped("state = self.initial_state", items, "", "            ")

    @property
    def step_def(self) -> str:
        params = ["self", *(f"{n}: Tensor" for n in self.input_names), "state: State"]
        return wrapped("def step", params, " -> tuple[Tensor, State]:", "    ")

    @property
    def step_doc(self) -> str:
        shapes = ", ".join(f"`{_layout(('B',), t.axes)}`" for t in self.plan.inputs)
        line = f'"""Mixes one token {shapes} and returns y and the next state, at constant cost."""'
        if len(line) <= WIDTH - 8:
            return f"        {line}"
        about = paragraph(f"The token is {shapes}.", "        ")
        first = '        """Mixes one token at constant cost; returns y and the next state.'
        return f'{first}\n\n{about}\n        """'

    @property
    def step_call(self) -> str:
        inputs = [f"{n}.unsqueeze(1)" for n in self.input_names]
        arguments = [*inputs, "state", 'mode="recurrent"', "return_state=True"]
        return wrapped("y, state = self.forward", arguments, "", "        ")

    @property
    def check_def(self) -> str:
        inputs = [f"{n}: Tensor" for n in self.input_names]
        params = ["self", *inputs, "state: State | None", "mode: str", "chunk: int"]
        return wrapped("def _check", params, " -> None:", "    ")

    @property
    def state_shapes(self) -> str:
        items = [
            self._shape_row(s.name, [f"self.{self._size(a)}" for a in s.axes])
            for s in self.plan.states
        ]
        for r in self.plan.registers:
            axes = [self._register_length(r), *(f"self.{self._size(a)}" for a in r.axes)]
            items.append(self._shape_row(r.name, axes))
        lone = "," if len(items) == 1 else ""
        line = f"        for name, x, axes in ({', '.join(map(str, items))}{lone}):"
        if len(line) <= WIDTH:
            return line
        shapes = f"        shapes = ({items[0]},)"
        if lone == "" or len(shapes) > WIDTH:
            shapes = wrapped("shapes = ", items, "", "        ")
        return f"{shapes}\n        for name, x, axes in shapes:"

    def _shape_row(self, name: str, axes: list[str]) -> Call:
        lone = "," if len(axes) == 1 else ""
        ident = self.ident(name)
        return Call("", (f'"{ident}"', f"state.{ident}", f"({', '.join(axes)}{lone})"))

    # --- functional form --------------------------------------------------------------------------

    @property
    def functional_def(self) -> str:
        tensors = [
            *self.input_names,
            *(p.name for p in self.parameters),
            *(t["name"] for t in self.states),
        ]
        rows = "".join(f"    {n}: Tensor,\n" for n in tensors)
        count = 1 + len(self.states)
        result = f"tuple[{', '.join(['Tensor'] * count)}]"
        return (
            f"def {self.function}(\n{rows}    *,\n"
            f'    mode: str = "auto",\n    chunk: int = {self.chunk},\n) -> {result}:'
        )

    @property
    def functional_title(self) -> str:
        value = f"{self.output} `{self.output_shape}`"
        text = f"Returns {value} and each state tensor after the last token."
        return paragraph(text, "    ", '    """')

    @property
    def functional_args(self) -> list[str]:
        out = [f"{i['name']}: {i['meaning']}" for i in self.inputs]
        by_shape: dict[str, list[str]] = {}
        for p in self.parameters:
            by_shape.setdefault(f"`[{', '.join(p.axes)}]`.", []).append(p.name)
        out += [f"{', '.join(names)}: {shape}" for shape, names in by_shape.items()]
        out += [f"{t['name']}: {t['meaning'][:-1]} before the first token." for t in self.states]
        return out

    @property
    def functional_return(self) -> str:
        items = [f"{self.result}.to(dtype)", *self.next_states, *self.registers]
        line = f"    return {', '.join(items)}"
        if len(items) == 1:
            return f"    return ({items[0]},)"
        if len(line) <= WIDTH:
            return line
        names = [f"    next_{k} = {text}" for k, text in enumerate(items[1:], 1)]
        short = ", ".join([items[0], *(f"next_{k}" for k in range(1, len(items)))])
        return "\n".join([*names, f"    return {short}"])

    # --- operators -------------------------------------------------------------------------------

    def _op_shared(self) -> str:
        if not self.scans:
            return ""
        return self._part("op_shared.py.j2").rstrip("\n")

    def _sections(self) -> Iterator[str]:
        for s in self.skeletons:
            yield self._part("op.py.j2", s=s)
            yield self._part(f"{s.form}.py.j2", s=s)
        by_form: dict[str, list[Skeleton]] = {}
        for s in self.skeletons:
            by_form.setdefault(s.form, []).append(s)
        for form, members in by_form.items():
            yield self._part(
                f"{form}_shared.py.j2",
                family=members[0].family,
                decay=any(s.decay for s in members),
                plain=any(not s.decay for s in members),
                heads=any(s.shared for s in members),
            )

    def _part(self, name: str, **context: Any) -> str:  # noqa: ANN401 - what the template asks for
        return _environment().get_template(name).render(**context).strip("\n")

    # --- reference -------------------------------------------------------------------------------

    @property
    def reference_def(self) -> str:
        names = [*self.input_names, *(p.name for p in self.parameters)]
        return wrapped("def reference", [f"{n}: Tensor" for n in names], " -> Tensor:", "")

    @property
    def reference_body(self) -> list[str]:
        names = [*self.input_names, *(p.name for p in self.parameters)]
        lines = []
        while names:
            # As many at a time as fit a line.
            count = max(k for k in range(1, 1 + len(names)) if k == 1 or _fits(_doubled(names[:k])))
            lines.append(_doubled(names[:count]))
            names = names[count:]
        lines += [f"    {n} = {w}" for n, w in self._reference_sizes()]
        return [*lines, *self._reference.lines, f"    return {self._reference.result}"]

    def _reference_sizes(self) -> list[tuple[str, str]]:
        text = "\n".join(self._reference.lines)
        out = []
        for d in self.plan.axes:
            name = self.ident(d.axis.name)
            if d.axis.copy_of is None and _mentions(text, name):
                out.append((name, _where(self.plan, self.ident, d.axis.name)))
        return out

    @property
    def reference_helpers(self) -> list[str]:
        used = self._reference.helpers
        return [HELPERS[k].rstrip("\n") for k in HELPERS if k in used]


_FORMS: dict[Form, type[Skeleton]] = {
    Form.MATRIX: MatrixSkeleton,
    Form.SELECTIVE: SelectiveSkeleton,
    Form.ELEMENTWISE: ElementwiseSkeleton,
}


def _skeletons(plan: Plan, arrays: dict[str, Any]) -> tuple[Skeleton, ...]:
    scans = [k for k in plan.kernels if isinstance(k, Scan)]
    adjoints = {a.scan: a for a in plan.adjoints}
    several = len({s.form for s in scans}) > 1
    # The scans of a module share the code that cuts into chunks, heads in front or not.
    shared = all(is_shared(s, arrays) for s in scans if s.form is Form.MATRIX)
    return tuple(
        _FORMS[s.form](
            s,
            adjoints[s.name],
            suffix,
            f"_{s.form.value}_" if several else "_",
            arrays,
            shared,
        )
        for s, suffix in zip(scans, _suffixes([s.name for s in scans]), strict=True)
    )


def _suffixes(scans: list[str]) -> list[str]:
    """What follows the names of each scan's functions: nothing, its name, or its number."""
    if len(scans) == 1:
        return [""]
    # `_forward_recurrent` is a function of every scan; none may seem to be one of `recurrent`.
    if any(s.split("_")[0] in ("recurrent", "chunked", "flops") for s in scans):
        return [f"_{k}" for k in range(1, 1 + len(scans))]
    return [f"_{s}" for s in scans]


def _input(t: Tensor, identifier: Callable[[str], str]) -> dict[str, str]:
    name = identifier(t.name)
    layout = _layout(("B", "L"), t.axes)
    return {"name": name, "meaning": f"`{layout}`.", "layout": layout}


def _layout(lead: tuple[str, ...], axes: tuple[Axis, ...]) -> str:
    return f"[{', '.join([*lead, *(a.name for a in axes)])}]"


def _indented(text: str) -> list[str]:
    """Lines of a rendered value, indented; what is too long goes on in the next line."""
    lines = []
    for line in plain_lines(text):
        body = line.lstrip()
        indent = " " * (4 + len(line) - len(body))
        lines += paragraph(body, f"{indent}    ", indent).split("\n") if body else [""]
    return lines


def plain_lines(text: str) -> list[str]:
    """Returns lines of a rendered value as they may stand in a docstring."""
    return [
        "".join(c if c.isprintable() and c != "\\" else "?" for c in line).replace('"""', "'''")
        for line in text.rstrip("\n").split("\n")
    ]


def _doubled(names: list[str]) -> str:
    """The statement that widens arguments of the reference."""
    if len(names) == 1:
        return f"    {names[0]} = {names[0]}.double()"
    joined = ", ".join(names)
    return f"    {joined} = (x.double() for x in ({joined}))"


def _fits(line: str) -> bool:
    return len(line) <= WIDTH


def _mentions(text: str, name: str) -> bool:
    code = re.sub('"[^"]*"', "", text)
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w(])", code) is not None


def _where(plan: Plan, identifier: Callable[[str], str], name: str) -> str:

    for t in (*plan.params, *plan.buffers):
        for at, a in enumerate(stored_axes(t)):
            if a.name == name:
                return f"{identifier(t.name)}.shape[{at}]"
    for i in plan.inputs:
        for at, a in enumerate(i.axes):
            if a.name == name:
                return f"{identifier(i.name)}.shape[{at + 2}]"
    raise KeyError(name)
