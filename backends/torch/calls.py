"""Prints the call of a scan's operator in the functional form.

The operator of a matrix, keyed or low-rank scan takes `[B, L, h, n]`, `[B, L, h, p]` and `[B, h, n,
p]` whatever the axes of the spec: heads, keys and channels are each flattened to one axis, a
missing head axis is one of size 1, and columns are laid side by side along the channels. A
convolution's takes constants `[1, C, N]`, values `[B, L, C]` and states `[B, C, N]`; one with a
full matrix that `[1, C, N, N]`, and values `[B, L, C, I]` of one number or of all of the state.
The others take the spec's axes.
"""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.tree import Axis, Field
from dsfc.plan.forms.table import FORMS as PLAN_FORMS
from dsfc.plan.ir import Buffer, Role
from dsfc.plan.scan_ir import Column, Group, Transition

from .code import cast
from .context import arriving_state, summary
from .forms.row import Layout
from .forms.table import FORMS
from .grouping import Size, regrouped, ungrouped
from .layout import WIDTH, wrapped
from .skeletons import Skeleton


class ScanCall:
    """Prints the statements of one call.

    Args:
        skeleton: the scan.
        names: identifier of each buffer and state.
        size: variable that holds an axis' size.
        like: identifier of an input.
        fresh: gives an unused variable name.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        names: Callable[[str], str],
        size: Size,
        like: str,
        fresh: Callable[[str], str],
    ) -> None:
        self._s = skeleton
        self._scan = skeleton.scan
        self._ident = names
        self._size = size
        self._like = like
        self._fresh = fresh

    @property
    def _layout(self) -> Layout:
        return FORMS[self._scan.form].layout

    def lines(self, next_states: dict[str, str], distributed: bool = False) -> list[str]:
        """Returns the statements.

        Args:
            next_states: learns the variable of each state's next value.
            distributed: whether processes may share a sequence, and the state before it arrives.
        """
        scan = self._scan
        before: list[str] = []
        if scan.transition is not None:
            arguments, state, looked = self._dense_arguments(scan.transition)
        elif self._layout is Layout.RESPONSES:
            arguments, state, looked = self._fixed_arguments(before)
        else:
            arguments, state, looked = self._token_arguments(before)
        if distributed:
            rest, called = self._behind(arguments[-1]), f"_recurrence{self._s.suffix}"
            more, arguments = arriving_state(
                scan.name, called, arguments, rest, self._summary, self._fresh
            )
            before, state = [*before, *more], arguments[-1]
        out, last = self._fresh(f"{scan.name}_out"), self._fresh(f"{scan.name}_last")
        after = self._outputs(out) + self._next(last, next_states)
        # A result that needs no change of layout is bound under its own name at once.
        for line in list(after):
            name, _, value = line.strip().partition(" = ")
            if value == out and not scan.before:
                out = name
                after.remove(line)
            elif value == last:
                last = name
                after.remove(line)
        call = self._call(arguments, out, last)
        shifted = self._shifted(out, state, looked) if scan.before else []
        return [*before, *call, *shifted, *after]

    def _call(self, arguments: list[str], out: str, last: str) -> list[str]:
        head = f"{out}, {last} = _recurrence{self._s.suffix}"
        dense = self._scan.transition is not None
        if self._layout is not Layout.RESPONSES and not dense:
            return [wrapped(head, [*arguments, *self._behind(arguments[-1])], "", "    ")]
        # Λ is the same at every token, so the state that stops earlier is computed by itself.
        arguments_name = self._fresh(f"{self._scan.name}_given")
        return [
            wrapped(f"{arguments_name} = ", arguments, "", "    "),
            wrapped(head, [f"*{arguments_name}", *self._s.option_names], "", "    "),
            f"    if lengths is not None{'' if dense else ' and carry'}:",
            f"        run = _recurrence{self._s.suffix}",
            f"        {last} = _dense_stopped(run, {arguments_name}, lengths, chunk, MODES)"
            if dense
            else f"        {last} = _stopped(run, *{arguments_name}, lengths, chunk, MODES)",
        ]

    def _behind(self, state: str) -> list[str]:
        """The arguments of the operator behind its tensors, the last of which is the state."""
        return self._s.option_names

    def _summary(self, tokens: str) -> tuple[str, list[str]]:
        """The function that summarises a segment, and its named arguments; see `arriving_state`."""
        return summary(self._scan, tokens)

    # --- arguments -------------------------------------------------------------------------------

    @property
    def _wide(self) -> str:
        """Variable that holds the dtype of the state."""
        return "field" if self._s.complex else "wide"

    @property
    def _narrow(self) -> str:
        """Variable that holds the dtype of reads, keys and values."""
        return self._wide if self._s.complex else "dtype"

    @property
    def _precise(self) -> str:
        """Variable that holds the dtype of log λ."""
        return self._wide

    def _token_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        """The operator's tensors; text of the state, and of what is read before the update."""
        scan = self._scan
        read = looked = None
        if scan.read is not None:
            read = self._keyed(scan.read)
            if scan.before:
                looked = self._fresh(f"{scan.name}_looked")
                before.append(f"    {looked} = {read}")
                read = f"torch.cat(({looked}, torch.zeros_like({looked}[:, :1])), 1)[:, 1:]"
        values = self._values(before)
        value = scan.columns[0].value if len(scan.columns) == 1 else None
        if read is None:
            roles = [(value, self._kept(values))]
        else:
            roles = [(scan.read, read), (scan.key, self._kept(self._keyed(scan.key or "")))]
            roles.append((value, values))
        if scan.low_rank is not None:
            left, right = scan.low_rank.left, scan.low_rank.right
            roles += [(left, self._kept(self._keyed(left))), (right, self._keyed(right))]
        tokens = _apart(roles)
        arguments = [cast(t, self._narrow) for t in tokens]
        if scan.delta is not None:
            strength = self._kept(self._grouped(scan.delta.strength, (scan.heads,)))
            arguments.append(cast(strength, self._precise))
        arguments += [cast(self._leaf(n), self._precise) for n in self._s.leaf_buffers]
        state = self._states(before)
        return [*arguments, cast(state, self._wide)], state, looked

    def _kept(self, text: str) -> str:
        """What tells a token that it does not count."""
        return _kept(text)

    def _fixed_arguments(self, before: list[str]) -> tuple[list[str], str, str | None]:
        """The same of a convolution."""
        scan = self._scan
        (column,) = scan.columns
        wide = self._wide
        assert scan.decay is not None and column.value is not None
        (leaf,) = scan.decay.leaves
        rate = self._fixed(leaf)
        if scan.read is None:
            name = self._fresh(f"{scan.name}_rate")
            before.append(f"    {name} = {rate}")
            rate = name
        one = f"torch.ones_like({rate})"
        names = (scan.read, scan.key)
        constants = [self._in_field(n) if n else cast(one, wide) for n in names]
        narrow = wide if self._s.complex and not scan.real else "dtype"
        value = _kept(self._grouped(column.value, (scan.heads,)))
        groups = (scan.heads, scan.keys)
        state = self._regrouped(self._ident(column.state), self._tile(column), groups, lead=1)
        rest = [cast(value, narrow), cast(rate, wide), cast(state, wide)]
        read = one if scan.read is None else self._fixed(scan.read)
        return [*constants, *rest], state, read if scan.before else None

    def _dense_arguments(self, dense: Transition) -> tuple[list[str], str, str | None]:
        """The same of a scan whose transition is a full matrix."""
        scan = self._scan
        (column,) = scan.columns
        wide = self._wide
        assert column.value is not None
        groups = (scan.heads, dense.rows)
        state = self._regrouped(self._ident(column.state), self._tile(column), groups, lead=1)
        rest = [cast(self._full(dense), wide), cast(state, wide)]
        narrow = wide if self._s.complex else "dtype"
        if scan.key is None or scan.read is None:
            value = _kept(self._grouped(column.value, groups))
            return [cast(value, narrow), *rest], state, None
        value = _kept(self._grouped(column.value, (scan.heads,)))
        read, key = self._fixed(scan.read), self._fixed(scan.key)
        vectors = [cast(f"{read}.unsqueeze(-2)", wide), cast(f"{key}.unsqueeze(-1)", wide)]
        looked = read if scan.before else None
        return [*vectors, cast(f"{value}.unsqueeze(-1)", narrow), *rest], state, looked

    def _full(self, dense: Transition) -> str:
        """A full matrix as `[1, C, N, N]`; C is 1 where all heads share it."""
        b = self._arrays(dense.matrix)
        shared = not set(b.axes) & set(self._scan.heads)
        heads = () if shared else self._scan.heads
        axes = tuple(sorted((*heads, *dense.rows, *dense.columns)))
        text = self._ident(b.name)
        if b.axes != axes:
            slots = ", ".join(":" if a in b.axes else "None" for a in axes)
            sizes = ", ".join(self._size(a) for a in axes)
            text = f"{text}[{slots}].expand({sizes})"
        text = self._regrouped(text, axes, (heads, dense.rows, dense.columns), lead=0)
        return f"{text}.unsqueeze(0)"

    def _in_field(self, name: str) -> str:
        """A constant in the dtype of the state.

        A real one is given its imaginary part, not cast: PyTorch folds a cast of ones into a
        complex number, which its ahead-of-time packages cannot hold.
        """
        text = self._fixed(name)
        if self._s.complex and self._arrays(name).field is Field.REAL:
            return f"torch.view_as_complex(F.pad({text}[..., None].to(wide), (0, 1)))"
        return cast(text, self._wide)

    def _fixed(self, name: str) -> str:
        """A constant as `[1, C, N]`."""
        scan = self._scan
        b = self._arrays(name)
        text = self._ident(name)
        if not set(b.axes) & set(scan.heads) and set(b.axes) == set(scan.keys):
            # All channels share it: C is 1.
            return f"{self._regrouped(text, b.axes, ((), scan.keys), lead=0)}.unsqueeze(0)"
        axes = tuple(sorted((*scan.heads, *scan.keys)))
        if b.axes != axes:
            slots = ", ".join(":" if a in b.axes else "None" for a in axes)
            sizes = ", ".join(self._size(a) for a in axes)
            index = f"[{slots}]" if "None" in slots else ""
            text = f"{text}{index}.expand({sizes})"
        return f"{self._regrouped(text, axes, (scan.heads, scan.keys), lead=0)}.unsqueeze(0)"

    def _keyed(self, name: str) -> str:
        """A read or key in the operator's layout."""
        if self._layout is not Layout.GROUPED:
            return self._expanded(name, self._arrays(name).axes)
        heads: tuple[Axis, ...] = () if self._s.shared else self._scan.heads
        groups = (self._scan.keys,) if self._s.shared else (heads, self._scan.keys)
        return self._grouped(name, groups)

    def _values(self, before: list[str]) -> str:
        """The columns' values side by side."""
        scan = self._scan
        if self._layout is not Layout.GROUPED:
            (column,) = scan.columns
            assert column.value is not None
            axes = self._tile(column) if self._layout is Layout.ENTRIES else self._side(column)
            return self._expanded(column.value, axes)
        parts = []
        known: str | None = None
        for c in self._columns:
            if c.value is not None:
                part = self._grouped(c.value, (scan.heads, c.channels))
                known = known or part
                parts.append(part)
            else:
                parts.append("")
        if known is None:
            return self._ones()
        one = f"torch.ones_like({known}[..., :1])"
        if len(parts) == 1:
            return parts[0]
        name = self._fresh(f"{scan.name}_values")
        before.append(_concatenated(name, [p or one for p in parts]))
        return name

    @property
    def _columns(self) -> tuple[Column, ...]:
        """Columns that are laid side by side."""
        return self._scan.columns

    def _ones(self) -> str:
        """A value of 1 and of no channels: `[B, L, h, 1]`."""
        heads = self._scan.heads
        sizes = ", ".join([self._size(a) for a in heads] or ["1"])
        text = f"{self._like}.new_ones(*{self._like}.shape[:2], {sizes}, 1)"
        return f"{text}.flatten(2, {1 + len(heads)})" if len(heads) > 1 else text

    def _leaf(self, name: str) -> str:
        """A leaf of the decay, with a batch axis and, where it varies, a time axis."""
        b = self._arrays(name)
        scan = self._scan
        ident = self._ident(name)
        if self._layout is Layout.GROUPED:
            keyed = Group.KEYS in PLAN_FORMS[scan.form].decay
            groups = (scan.heads, scan.keys) if keyed else (scan.heads,)
            return self._kept(self._grouped(name, groups))
        if self._layout is Layout.ENTRIES:
            (column,) = scan.columns
            return self._kept(self._expanded(name, self._tile(column)))
        if b.role is Role.CONSTANT:
            sizes = ", ".join([f"{self._like}.shape[0]", *["-1"] * len(b.axes)])
            return f"{ident}.expand({sizes})"
        return self._kept(ident)

    def _states(self, before: list[str]) -> str:
        scan = self._scan
        if self._layout is not Layout.GROUPED:
            return self._ident(scan.columns[0].state)
        parts = [self._state(c) for c in scan.columns]
        if len(parts) == 1:
            return parts[0]
        name = self._fresh(f"{scan.name}_before")
        before.append(_concatenated(name, parts))
        return name

    def _state(self, c: Column) -> str:
        scan = self._scan
        groups = (scan.heads, scan.keys, c.channels)
        return self._regrouped(self._ident(c.state), self._tile(c), groups, lead=1)

    # --- results ---------------------------------------------------------------------------------

    def _shifted(self, out: str, state: str, read: str | None) -> list[str]:
        """Outputs read before the update: those of the token before, the first from the state."""
        first = self._fresh(f"{self._scan.name}_first")
        return [
            f"    {first} = {self._first(state, read)}",
            f"    {out} = torch.cat(({first}.to({out}.dtype), {out}), 1)[:, :-1]",
        ]

    def _first(self, state: str, read: str | None) -> str:
        """Text of what a read before the update reads at the first token."""
        if self._layout is Layout.RESPONSES:
            part = ".real" if self._scan.real else ""
            text = f"({read} * {state}).sum(-1){part}.unsqueeze(1)"
            return text + (".unsqueeze(-1)" if self._scan.transition is not None else "")
        if read is None:
            return f"{state}.unsqueeze(1)"
        equation, wide = self._s.before_equation, self._wide
        assert equation, "a read without subscripts"
        return f'torch.einsum("{equation}", {read}[:, :1].to({wide}), {state}.to({wide}))'

    def _outputs(self, out: str) -> list[str]:
        scan = self._scan
        if self._layout is Layout.RESPONSES:
            (column,) = scan.columns
            part = f"{out}.squeeze(-1)" if scan.transition is not None else out
            text = self._ungrouped(part, scan.heads, (scan.heads,), lead=2)
            return [f"    {self._ident(column.output)} = {text}"]
        if scan.transition is not None:
            (column,) = scan.columns
            text = self._ungrouped(
                out, self._tile(column), (scan.heads, scan.transition.rows), lead=2
            )
            return [f"    {self._ident(column.output)} = {text}"]
        if self._layout is not Layout.GROUPED:
            return [f"    {self._ident(scan.columns[0].output)} = {out}"]
        lines = []
        for c, part in zip(self._columns, self._slices(out, self._columns), strict=True):
            axes = tuple(sorted((*scan.heads, *c.channels)))
            text = self._ungrouped(part, axes, (scan.heads, c.channels), lead=2)
            lines.append(f"    {self._ident(c.output)} = {text}")
        return lines

    def _next(self, last: str, next_states: dict[str, str]) -> list[str]:
        scan = self._scan
        lines = []
        parts = self._slices(last, scan.columns) if self._layout is Layout.GROUPED else [last]
        for c, part in zip(scan.columns, parts, strict=True):
            if c.state in next_states:
                continue
            groups: tuple[tuple[Axis, ...], ...] = (scan.heads, scan.keys, c.channels)
            text = part
            if scan.transition is not None:
                groups = (scan.heads, scan.transition.rows)
            elif self._layout is Layout.RESPONSES:
                groups = (scan.heads, scan.keys)
            if self._layout not in (Layout.ENTRIES, Layout.TILE):
                text = self._ungrouped(part, self._tile(c), groups, lead=1)
            name = self._fresh(f"{self._ident(c.state)}_next")
            next_states[c.state] = name
            lines.append(f"    {name} = {text}")
        return lines

    def _slices(self, name: str, columns: tuple[Column, ...]) -> list[str]:
        """Columns of an array along its last axis."""
        if len(columns) == 1:
            return [name]
        bounds = ["0"]
        for c in columns[:-1]:  # the last one takes the rest
            width = " * ".join(self._size(a) for a in c.channels) or "1"
            bounds.append(width if bounds[-1] == "0" else f"{bounds[-1]} + {width}")
        out = []
        for k in range(len(columns)):
            start = "" if bounds[k] == "0" else bounds[k]
            stop = "" if k == len(columns) - 1 else bounds[k + 1]
            gap = " " if " " in start or " " in stop else ""
            left = f"{start}{gap}" if start else ""
            right = f"{gap}{stop}" if stop else ""
            out.append(f"{name}[..., {left}:{right}]")
        return out

    # --- layouts ---------------------------------------------------------------------------------

    def _arrays(self, name: str) -> Buffer:
        return self._s.arrays[name]

    def _tile(self, c: Column) -> tuple[Axis, ...]:
        return tuple(sorted((*self._scan.heads, *self._scan.keys, *c.channels)))

    def _side(self, c: Column) -> tuple[Axis, ...]:
        return tuple(sorted((*self._scan.heads, *c.channels)))

    def _expanded(self, name: str, axes: tuple[Axis, ...]) -> str:
        """A buffer broadcast to `[B, L, *axes]`."""
        b = self._arrays(name)
        ident = self._ident(name)
        lead = b.role is not Role.CONSTANT
        if b.axes == axes and lead:
            return ident
        slots = [":" if a in b.axes else "None" for a in axes]
        sizes = ", ".join(self._size(a) for a in axes)
        shape = f"*{self._like}.shape[:2], {sizes}" if sizes else f"*{self._like}.shape[:2]"
        if all(s == ":" for s in slots):
            return f"{ident}.expand({shape})"
        index = ", ".join(["...", *slots] if lead else slots)
        return f"{ident}[{index}].expand({shape})"

    def _grouped(self, name: str, groups: tuple[tuple[Axis, ...], ...]) -> str:
        """A buffer as `[B, L, group, …]`, broadcast to the groups' axes first."""
        axes = tuple(sorted(a for g in groups for a in g))
        return self._regrouped(self._expanded(name, axes), axes, groups, lead=2)

    def _regrouped(
        self, text: str, axes: tuple[Axis, ...], groups: tuple[tuple[Axis, ...], ...], lead: int
    ) -> str:
        return regrouped(text, axes, groups, lead)

    def _ungrouped(
        self, text: str, axes: tuple[Axis, ...], groups: tuple[tuple[Axis, ...], ...], lead: int
    ) -> str:
        return ungrouped(text, axes, groups, lead, self._size)


def _apart(roles: list[tuple[str | None, str]]) -> list[str]:
    """The texts of what is in each role; torch.compile refuses one tensor in two of them."""
    names = [name for name, _ in roles]
    return [f"{text}[:]" if name in names[:at] else text for at, (name, text) in enumerate(roles)]


def _kept(text: str) -> str:
    """0 at tokens that do not count. Of a drive's key or value: B = 0; of log λ: Λ = I."""
    return f"_kept({text}, counts)"


def _concatenated(name: str, parts: list[str]) -> str:
    line = f"    {name} = torch.cat(({', '.join(parts)}), -1)"
    if len(line) <= WIDTH:
        return line
    rows = "".join(f"        {p},\n" for p in parts)
    return f"    {name} = (\n{rows}    )\n    {name} = torch.cat({name}, -1)"
