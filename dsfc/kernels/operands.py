"""The arguments of kernels of chunks: sizes, the grid, tensors, and where a chunk lies in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Int,
    Position,
    Storage,
    Symbol,
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


def decays_by_keys(scan: Scan) -> bool:
    """Returns whether each key has a decay of its own."""
    return bool(scan.keys) and Group.KEYS in FORMS[scan.form].decay


def roles_of(scan: Scan) -> Iterator[Factor]:
    """Yields the roles that are arguments of a scan, in the order of its operators."""
    yield from (Factor.READ, Factor.KEY) if scan.read is not None else ()
    yield Factor.VALUE
    yield from (Factor.LEFT, Factor.RIGHT) if scan.low_rank is not None else ()
    yield from (Factor.STRENGTH,) if scan.delta is not None else ()


def buffer_of(scan: Scan, role: Factor) -> str | None:
    """Returns the buffer of a role that has one of its own."""
    match role:
        case Factor.READ:
            return scan.read
        case Factor.KEY:
            return scan.key
        case Factor.LEFT | Factor.RIGHT if scan.low_rank is not None:
            return scan.low_rank.left if role is Factor.LEFT else scan.low_rank.right
        case Factor.STRENGTH if scan.delta is not None:
            return scan.delta.strength
        case _:
            return None


class Operands:
    """The tensors of one kernel.

    A program has all of an axis, or a part of it: then `place` says which, and what is loaded and
    stored after it is of that part.

    Attributes:
        length: how many tokens there are.
        by_keys: whether each key has a decay of its own.
        row, head: indices of the grid.
    """

    def __init__(
        self,
        builder: KernelBuilder,
        scan: Scan,
        shared: bool,
        tokens: Tokens,
        keys: Axis,
        channels: Axis,
    ) -> None:
        """Declares sizes and the first two indices of the grid.

        Args:
            builder: of the kernel.
            scan: the scan.
            shared: whether read and key are the same for all heads.
            tokens: axes of a chunk.
            keys: axis of keys, of size N or of a part of it.
            channels: axis of channels, of size P or of a part of it.
        """
        k = self._k = builder
        self._scan, self._shared, self._tokens = scan, shared, tokens
        self.by_keys = decays_by_keys(scan)
        self._batch, self.length, self._heads = (k.dynamic(n) for n in "BLH")
        self._n, self._p = k.static("N"), k.static("P")
        self.row, self.head = k.grid("row", self._batch), k.grid("head", self._heads)
        for axis in (keys, channels):
            k.static(str(axis.size))
        self._axes = {keys: self._n, channels: self._p}
        self._at: dict[Int, Along] = {self._n: k.all(keys), self._p: k.all(channels)}
        self._summed: Int | None = None  # what is summed over, part by part
        self._parts: tuple[Int, ...] = ()
        self._part: tuple[Int, ...] = ()
        k.order(tokens.row, tokens.column, keys, channels)
        self._arguments: dict[str, Argument] = {}
        self._results: dict[str, Argument] = {}

    def declare_arguments(self) -> None:
        """Declares what a forward pass reads, in the order of the operators."""
        low_rank = [Factor.LEFT, Factor.RIGHT] if self._scan.low_rank is not None else []
        for role in (Factor.READ, Factor.KEY, Factor.VALUE, *low_rank):
            self.declare(role)
        if self._scan.delta is not None:
            self._wide("r", self._of_heads)
        if self._scan.decay is not None:
            self._wide("g", self._decay_sizes)
        self._wide("S", self.state_sizes)

    # --- parts of axes ----------------------------------------------------------------------------

    def parts(self, axis: Axis) -> Int:
        """Returns how many parts an axis has."""
        return ceil_div(self._axes[axis], Symbol(str(axis.size)))

    def place(self, axis: Axis, part: Int) -> None:
        """Says which part of an axis what follows is of."""
        whole = self._axes[axis]
        self._at[whole] = Along(axis, times(part, Symbol(str(axis.size))), whole)

    def sum_parts(self, axis: Axis, part: Int) -> None:
        """Gives each gradient that is a sum over an axis one result for each part of it."""
        self._summed, self._parts, self._part = self._axes[axis], (self.parts(axis),), (part,)

    # --- arguments --------------------------------------------------------------------------------

    def declare(self, role: Factor) -> Argument:
        """Declares the tensor of a role, if nothing has."""
        name = NAMES[role]
        if name not in self._arguments:
            self._arguments[name] = self._k.argument(name, self.sizes(role))
        return self._arguments[name]

    def load(self, role: Factor, start: Int) -> Tile:
        """Returns the tile of a role, of the chunk that starts at a token."""
        return self._k.load(self.declare(role), *self.at(role, start))

    def load_strength(self, start: Int) -> Tile:
        """Returns the strengths of a chunk's delta rule."""
        return self._k.load(self._wide("r", self._of_heads), *self._of_heads_at(start))

    def load_decay(self, start: Int) -> Tile:
        """Returns log λ of a chunk."""
        return self._k.load(self._wide("g", self._decay_sizes), *self._decay_at(start))

    def load_state(self, name: str = "S") -> Tile:
        """Returns the first state, or the gradient of the last."""
        return self._k.load(self._wide(name, self.state_sizes), *self.state_at)

    def _wide(self, name: str, sizes: tuple[Int, ...]) -> Argument:
        if name not in self._arguments:
            self._arguments[name] = self._k.argument(name, sizes, storage=Storage.WIDE)
        return self._arguments[name]

    # --- gradients --------------------------------------------------------------------------------

    def declare_gradient(self, role: Factor) -> None:
        """Declares the gradient of a role."""
        self._declare_result(NAMES[role], self._own_sizes(role), Storage.GIVEN)

    def store_gradient(self, role: Factor, start: Int, value: Tile) -> None:
        """Stores the gradient of a role, of the chunk that starts at a token."""
        self._store_result(NAMES[role], self._own_at(role, start), value)

    def declare_decay_gradient(self) -> None:
        """Declares the gradient of log λ."""
        self._declare_result("g", self._decay_sizes, Storage.WIDE)

    def store_decay_gradient(self, start: Int, value: Tile) -> None:
        """Stores the gradient of log λ."""
        self._store_result("g", self._decay_at(start), value)

    def declare_strength_gradient(self) -> None:
        """Declares the gradient of a delta rule's strengths."""
        self._declare_result("r", self._of_heads, Storage.WIDE)

    def store_strength_gradient(self, start: Int, value: Tile) -> None:
        """Stores the gradient of the strengths."""
        self._store_result("r", self._of_heads_at(start), value)

    def _declare_result(self, name: str, sizes: tuple[Int, ...], storage: Storage) -> None:
        if self._parts and self._summed not in sizes[3:]:
            sizes, storage = (*sizes[:3], *self._parts, *sizes[3:]), Storage.WIDE
        self._results[name] = self._k.argument(f"d{name}", sizes, Access.WRITE, storage)

    def _store_result(self, name: str, at: tuple[Position, ...], value: Tile) -> None:
        result = self._results[name]
        if len(result.shape) > len(at):
            at = (*at[:3], *self._part, *at[3:])
        self._k.store(result, *at, value=value)

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
        return self.row, self.head, self._at[self._n], self._at[self._p]

    def _is_shared(self, role: Factor) -> bool:
        # Each head writes its own gradient of a shared operand, and the caller adds them up.
        return self._shared and not is_wide(role)

    def _own_sizes(self, role: Factor) -> tuple[Int, ...]:
        """The sizes of a tensor that has heads."""
        last = self._p if is_wide(role) else self._n
        return self._batch, self.length, self._heads, last

    def _own_at(self, role: Factor, start: Int) -> tuple[Position, ...]:
        last = self._at[self._p if is_wide(role) else self._n]
        return self.row, Along(self._tokens.row, start, self.length), self.head, last

    @property
    def _of_heads(self) -> tuple[Int, ...]:
        return self._batch, self.length, self._heads

    def _of_heads_at(self, start: Int) -> tuple[Position, ...]:
        return self.row, Along(self._tokens.row, start, self.length), self.head

    @property
    def _decay_sizes(self) -> tuple[Int, ...]:
        return (*self._of_heads, self._n) if self.by_keys else self._of_heads

    def _decay_at(self, start: Int) -> tuple[Position, ...]:
        at = self._of_heads_at(start)
        return (*at, self._at[self._n]) if self.by_keys else at
