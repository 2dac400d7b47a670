"""The arguments of kernels of chunks: sizes, the grid, tensors, and where a chunk lies in them."""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Int,
    Position,
    Storage,
    ceil_div,
    times,
)
from dsfc.kernels.decay import Tokens
from dsfc.plan.forms.table import FORMS
from dsfc.plan.scan_ir import Factor, Group, Scan

NAMES: Mapping[Factor, str] = {
    Factor.READ: "q",
    Factor.KEY: "k",
    Factor.VALUE: "v",
    Factor.COTANGENT: "do",
    Factor.LEFT: "a",
    Factor.RIGHT: "b",
    Factor.WY: "wy",
    Factor.WY_BAR: "d_wy",
    Factor.STRENGTH: "r",
    Factor.RETRIEVED: "retrieved",
    Factor.RETRIEVED_BAR: "d_retrieved",
    Factor.WRITTEN: "written",
    Factor.VALUE_BAR: "d_value",
}
"""Names of the roles in kernels; arguments have those of the operators."""


def is_wide(role: Factor) -> bool:
    """Returns whether a role is over channels; others are over keys."""
    return role in (Factor.VALUE, Factor.COTANGENT)


class Operands:
    """The tensors of one kernel.

    Attributes:
        length: how many tokens there are.
        channels: the axis of a program's channels.
        by_keys: whether each key has a decay of its own.
    """

    def __init__(
        self,
        builder: KernelBuilder,
        scan: Scan,
        shared: bool,
        tokens: Tokens,
        keys: Axis,
        split: bool,
    ) -> None:
        """Declares what both directions read.

        Args:
            builder: of the kernel.
            scan: the scan.
            shared: whether read and key are the same for all heads.
            tokens: axes of a chunk.
            keys: axis of keys.
            split: whether a program has some channels of a head.
        """
        k = self._k = builder
        self._shared, self._tokens, self._keys = shared, tokens, keys
        self.by_keys = bool(scan.keys) and Group.KEYS in FORMS[scan.form].decay
        self._batch, self.length, self._heads = (k.dynamic(n) for n in "BLH")
        self._n, self._p = k.static("N"), k.static("P")
        self._b, self._h = k.grid("row", self._batch), k.grid("head", self._heads)
        self._parts: tuple[Int, ...] = ()  # how many parts the channels of a head have
        self._part: tuple[Int, ...] = ()
        if split:
            tile = k.static("PT")
            self.channels = Axis("p", "PT")
            self._parts = (ceil_div(self._p, tile),)
            self._part = (k.grid("part", *self._parts),)
            self._channels_at = Along(self.channels, times(*self._part, tile), self._p)
        else:
            self.channels = Axis("p", "P")
            self._channels_at = k.all(self.channels)
        k.order(tokens.row, tokens.column, keys, self.channels)
        self._arguments: dict[str, Argument] = {}
        self._results: dict[str, Argument] = {}
        low_rank = [Factor.LEFT, Factor.RIGHT] if scan.low_rank is not None else []
        for role in (Factor.READ, Factor.KEY, Factor.VALUE, *low_rank):
            self.declare(role)
        if scan.delta is not None:
            strengths = k.argument("r", self._of_heads, storage=Storage.WIDE)
            self._arguments["r"] = strengths
        if scan.decay is not None:
            self._arguments["g"] = k.argument("g", self._decay_sizes, storage=Storage.WIDE)
        self._arguments["S"] = k.argument("S", self.state_sizes, storage=Storage.WIDE)

    # --- arguments --------------------------------------------------------------------------------

    def declare(self, role: Factor) -> None:
        """Declares the tensor of a role."""
        self._arguments[NAMES[role]] = self._k.argument(NAMES[role], self.sizes(role))

    def load(self, role: Factor, start: Int) -> Tile:
        """Returns the tile of a role, of the chunk that starts at a token."""
        return self._k.load(self._arguments[NAMES[role]], *self.at(role, start))

    def load_strength(self, start: Int) -> Tile:
        """Returns the strengths of a chunk's delta rule."""
        return self._k.load(self._arguments["r"], *self._of_heads_at(start))

    def load_decay(self, start: Int) -> Tile:
        """Returns log λ of a chunk."""
        return self._k.load(self._arguments["g"], *self._decay_at(start))

    def load_state(self) -> Tile:
        """Returns the first state."""
        return self._k.load(self._arguments["S"], *self.state_at)

    # --- gradients --------------------------------------------------------------------------------

    def declare_gradient(self, role: Factor) -> None:
        """Declares the gradient of a role; a sum over channels is one of each part."""
        name, sizes = f"d{NAMES[role]}", self._own_sizes(role)
        storage = Storage.GIVEN
        if self._parts and not is_wide(role):
            sizes, storage = (*sizes[:3], *self._parts, *sizes[3:]), Storage.WIDE
        self._results[name] = self._k.argument(name, sizes, Access.WRITE, storage)

    def store_gradient(self, role: Factor, start: Int, value: Tile) -> None:
        """Stores the gradient of a role, of the chunk that starts at a token."""
        at = self._own_at(role, start)
        at = at if is_wide(role) else (*at[:3], *self._part, *at[3:])
        self._k.store(self._results[f"d{NAMES[role]}"], *at, value=value)

    def declare_decay_gradient(self) -> None:
        """Declares the gradient of log λ, a sum over channels."""
        sizes = self._decay_sizes
        sizes = (*sizes[:3], *self._parts, *sizes[3:])
        self._results["dg"] = self._k.argument("dg", sizes, Access.WRITE, Storage.WIDE)

    def store_decay_gradient(self, start: Int, value: Tile) -> None:
        """Stores the gradient of log λ."""
        at = self._decay_at(start)
        self._k.store(self._results["dg"], *at[:3], *self._part, *at[3:], value=value)

    def declare_strength_gradient(self) -> None:
        """Declares the gradient of a delta rule's strengths, a sum over channels."""
        sizes = (*self._of_heads, *self._parts)
        self._results["dr"] = self._k.argument("dr", sizes, Access.WRITE, Storage.WIDE)

    def store_strength_gradient(self, start: Int, value: Tile) -> None:
        """Stores the gradient of the strengths."""
        at = (*self._of_heads_at(start), *self._part)
        self._k.store(self._results["dr"], *at, value=value)

    # --- sizes and positions ----------------------------------------------------------------------

    def sizes(self, role: Factor) -> tuple[Int, ...]:
        """Returns the sizes of the tensor of a role."""
        sizes = self._own_sizes(role)
        return (*sizes[:2], *sizes[3:]) if self._is_shared(role) else sizes

    def at(self, role: Factor, start: Int) -> tuple[Position, ...]:
        """Returns where the chunk lies in it that starts at a token."""
        at = self._own_at(role, start)
        return (*at[:2], *at[3:]) if self._is_shared(role) else at

    @property
    def state_sizes(self) -> tuple[Int, ...]:
        """The sizes of a state."""
        return self._batch, self._heads, self._n, self._p

    @property
    def state_at(self) -> tuple[Position, ...]:
        """Where a program's state lies in it."""
        return self._b, self._h, self._k.all(self._keys), self._channels_at

    def _is_shared(self, role: Factor) -> bool:
        # Each head writes its own gradient of a shared operand, and the caller adds them up.
        return self._shared and not is_wide(role)

    def _own_sizes(self, role: Factor) -> tuple[Int, ...]:
        """The sizes of a tensor that has heads."""
        last = self._p if is_wide(role) else self._n
        return self._batch, self.length, self._heads, last

    def _own_at(self, role: Factor, start: Int) -> tuple[Position, ...]:
        last = self._channels_at if is_wide(role) else self._k.all(self._keys)
        return self._b, Along(self._tokens.row, start, self.length), self._h, last

    @property
    def _of_heads(self) -> tuple[Int, ...]:
        return self._batch, self.length, self._heads

    def _of_heads_at(self, start: Int) -> tuple[Position, ...]:
        return self._b, Along(self._tokens.row, start, self.length), self._h

    @property
    def _decay_sizes(self) -> tuple[Int, ...]:
        return (*self._of_heads, self._n) if self.by_keys else self._of_heads

    def _decay_at(self, start: Int) -> tuple[Position, ...]:
        at = self._of_heads_at(start)
        return (*at, self._k.all(self._keys)) if self.by_keys else at
