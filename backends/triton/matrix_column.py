"""The column of one channel that a matrix scan's state may have: its statements in the kernels."""

from __future__ import annotations

from dataclasses import dataclass

_HERE = " " * 8


@dataclass(frozen=True)
class Column:
    """Statements of a column `z` of the state, its value and its output: none where there is none.

    Attributes:
        there: whether there is such a column.
        decays: whether states decay.
        weighted: whether values have a weight.
    """

    there: bool
    decays: bool
    weighted: bool

    def _lines(self, *lines: str) -> list[str]:
        return list(lines) if self.there else []

    @property
    def place(self) -> list[str]:
        """Where it is in a state whose rows end with it."""
        return self._lines("    o_z, m_z = o_k * (V + 1) + V, o_k < K")

    def loaded(self, name: str, at: str, size: str = "BK") -> list[str]:
        """Loads one of a state."""
        text = f"tl.load({at} + o_z, mask=m_z, other=0).to(tl.float32)"
        return self._lines(f"    {name} = {text}  # [{size}]")

    def zero(self, name: str) -> list[str]:
        """Starts one with nothing."""
        return self._lines(f"    {name} = tl.zeros((BK,), tl.float32)")

    def stored(self, name: str, at: str, indent: str) -> list[str]:
        """Stores one in a state."""
        return self._lines(f"{indent}tl.store({at} + o_z, {name}, mask=m_z)")

    def stored_once(self, name: str, at: str, indent: str = "    ") -> list[str]:
        """Stores one in a state, by the first of the programs that have it."""
        stored = self.stored(name, at, f"{indent}    ")
        return [*self._lines(f"{indent}if i_v == 0:"), *stored]

    @property
    def value(self) -> list[str]:
        """Loads its values."""
        mask = "m_t" if self.weighted else "m_c"
        return self._lines(
            f"{_HERE}b_w = tl.load(p_v_w + row + o_t * H, mask={mask}, other=0).to(tl.float32)"
        )

    @property
    def weighed(self) -> list[str]:
        """Multiplies them by their weights."""
        return self._lines(f"{_HERE}b_w *= b_weight")

    @property
    def gradient(self) -> list[str]:
        """Loads the gradients of its outputs."""
        text = "tl.load(d_out_w + row + o_t * H, mask=m_t, other=0).to(tl.float32)"
        return self._lines(f"{_HERE}b_dw = {text}")

    @property
    def output(self) -> list[str]:
        """Its outputs."""
        head = " * head" if self.decays else ""
        text = "tl.sum(pairs * b_w[None, :], 1) + tl.sum(r_q * z[None, :], 1)"
        return self._lines(f"{_HERE}b_o_w = {text}{head}")

    def scaled(self, factor: str) -> list[str]:
        """Multiplies them by a constant factor."""
        return self._lines(*[f"{_HERE}b_o_w *= {factor}"] * bool(factor))

    @property
    def stored_output(self) -> list[str]:
        """Stores them, by the first of the programs that have them."""
        stored = "tl.store(out_w + row + o_t * H, b_o_w, mask=m_t)"
        return self._lines(f"{_HERE}if i_v == 0:", f"{_HERE}    {stored}")

    @property
    def carried(self) -> list[str]:
        """Adds what a chunk makes to it."""
        if self.decays:
            text = "z = z * through + tl.sum(r_k * (b_w * tail)[:, None], 0)"
        else:
            text = "z += tl.sum(r_k * b_w[:, None], 0)"
        return self._lines(_HERE + text)

    @property
    def kept(self) -> list[str]:
        """Likewise where keys have their weights and decays."""
        decayed = "z = z * through +" if self.decays else "z +="
        return self._lines(f"{_HERE}{decayed} tl.sum(r_k * b_w[:, None], 0)")

    def paired(self, value: str, gradient: str) -> list[str]:
        """Adds products of its values and outputs' gradients to those of all channels."""
        return self._lines(f"{_HERE}pairs += {value} * {gradient}")

    @property
    def past(self) -> list[str]:
        """Adds what tokens read of it."""
        return self._lines(f"{_HERE}past += b_dw[:, None] * z[None, :]")

    @property
    def future(self) -> list[str]:
        """Adds what its gradient gives tokens."""
        return self._lines(f"{_HERE}future += b_w[:, None] * dz[None, :]")

    @property
    def span(self) -> list[str]:
        """Stores it at the start of a span, behind the states of all channels."""
        stored = "tl.store(spans + at + K * V + o_k, z.to(spans.dtype.element_ty), mask=o_k < K)"
        return self._lines(f"{_HERE}    {stored}")

    @property
    def over_end(self) -> list[str]:
        """Adds what passes over the end by it."""
        text = "tl.sum(tl.load(d_last + start + o_z, mask=m_z, other=0).to(tl.float32) * z, 0)"
        return self._lines(f"{_HERE}over_end += {text}")

    def values_back(self, scale: str) -> list[str]:
        """Gradients of its values, and of it ahead of the chunk."""
        first = f"{_HERE}db_w = tl.sum(pairs * b_dw[None, :], 1) + tl.sum(r_k * dz[None, :], 1)"
        if self.decays:
            back = "dz = dz * through + tl.sum(r_q * (b_dw * head)[:, None], 0)"
            return self._lines(f"{first} * tail", _HERE + back)
        times = f" * {scale}" if scale else ""
        return self._lines(first, f"{_HERE}dz += tl.sum(r_q * (b_dw{times})[:, None], 0)")

    @property
    def stored_values_back(self) -> list[str]:
        """Stores gradients of its values, by the first of the programs that have them."""
        text = "db_w * b_weight" if self.weighted else "tl.where(m_c, db_w, 0)"
        return self._lines(
            f"{_HERE}if i_v == 0:",
            f"{_HERE}    db_w = {text}",
            f"{_HERE}    tl.store(dp_v_w + row + o_t * H, db_w, mask=m_t)",
        )
