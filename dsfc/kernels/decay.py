"""The decay inside one chunk of tokens: what multiplies what, without an exponential but its own.

    pairs(x, y)_ij = Σ_n x_in y_jn Π_{j < t ≤ i} λ_tn        (early: j < t < i, and 0 for j ≥ i)

Products of decays are made as products, never as quotients or as exponentials of differences: a
decay of 0 is exact, and nothing overflows. A decay of heads is a factor of each pair. One of keys
is not: there the pairs are made level by level. At level m, rows in the second half and columns in
the first half of a block of 2 m tokens meet at its middle, each with its decay up to there.

The gradient of log λ at a token is what passes over it: Σ of all that was written before it, and is
read from it on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import Axis, Part, Triangle


@dataclass(frozen=True)
class Tokens:
    """The axes of one chunk of tokens.

    Attributes:
        row: of tokens that read, and of all that is loaded.
        column: of tokens that write.
    """

    row: Axis
    column: Axis

    @property
    def size(self) -> int:
        """Tokens of a chunk."""
        assert isinstance(self.row.size, int)
        return self.row.size

    def triangle(self, early: bool, block: int | None = None) -> Triangle:
        """Returns which pairs of tokens there are."""
        part = Part.STRICTLY_LOWER if early else Part.LOWER
        return Triangle(self.row, self.column, part, block)


class Decay(ABC):
    """The decay of a chunk, or λ = 1.

    It is used forwards (`pairs`, `head`, `tail`, `whole`) and then pulled back: each product of the
    forward pass says, by the methods named `pull_…`, what it gives to the gradients, and `gradient`
    is then that of log λ.
    """

    def __init__(
        self, builder: KernelBuilder, tokens: Tokens, keys: Axis, factor: Tile | None
    ) -> None:
        self._k = builder
        self._tokens = tokens
        self._keys = keys
        self._factor = factor
        self._gradient: Tile | None = None

    # --- forwards ---------------------------------------------------------------------------------

    def head(self, early: bool) -> Tile | None:
        """Returns the decay from the chunk's start through each token (early: to before it)."""
        if self._factor is None:
            return None
        name = "early" if early else "head"
        return self._k.named(name, self._product(exclusive=early))

    @property
    def tail(self) -> Tile | None:
        """The decay from after each token to the chunk's end."""
        if self._factor is None:
            return None
        return self._k.named("tail", self._product(reverse=True, exclusive=True))

    @property
    def whole(self) -> Tile | None:
        """The decay over the chunk."""
        if self._factor is None:
            return None
        return self._k.named("whole", self._k.product(self._factor, self._tokens.row))

    @abstractmethod
    def pairs(self, x: Tile, y: Tile, early: bool, name: str) -> Tile:
        """Returns all products of a read x and a write y inside the chunk, decayed.

        Args:
            x: over (row, keys).
            y: over (row, keys).
            early: whether x reads the state before the token.
            name: of the result.
        """

    # --- backwards --------------------------------------------------------------------------------

    @abstractmethod
    def pull_row(self, weights: Tile, x: Tile, y: Tile, early: bool) -> Tile:
        """Returns the gradient of the read x from that of `pairs(x, y)`."""

    @abstractmethod
    def pull_column(self, weights: Tile, x: Tile, y: Tile, early: bool) -> Tile:
        """Returns the gradient of the write y from that of `pairs(x, y)`."""

    def pull_head(self, x: Tile, dx: Tile, early: bool) -> None:
        """Takes in what passes from before the chunk to a read x, with the gradient dx."""
        if self._factor is not None:
            passed = self._k.cumulate(
                "sum", self._own(x * dx), self._tokens.row, reverse=True, exclusive=early
            )
            self._add(passed)

    def pull_tail(self, y: Tile, dy: Tile) -> None:
        """Takes in what passes from a write y to after the chunk, with the gradient dy."""
        if self._factor is not None:
            own = self._own(y * dy)
            self._add(self._k.cumulate("sum", own, self._tokens.row, exclusive=True))

    def pull_whole(self, state: Tile, gradient: Tile) -> None:
        """Takes in what passes over the whole chunk."""
        if self._factor is not None:
            product = state * gradient
            across = self._k.sum(product, *(a for a in product.axes if a not in self._axes))
            whole = self.whole
            assert whole is not None
            self._add(across * whole)

    @property
    def gradient(self) -> Tile | None:
        """The gradient of log λ; None for λ = 1."""
        return self._gradient

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _axes(self) -> tuple[Axis, ...]:
        return () if self._factor is None else self._factor.axes

    @property
    def _row_index(self) -> Tile:
        return self._k.index(self._tokens.row)

    def _product(
        self, *, reverse: bool = False, exclusive: bool = False, block: int | None = None
    ) -> Tile:
        assert self._factor is not None
        row = self._tokens.row
        return self._k.cumulate(
            "product", self._factor, row, reverse=reverse, exclusive=exclusive, block=block
        )

    def _own(self, x: Tile) -> Tile:
        """The sum of an entry-wise product over the axes that the decay lacks."""
        return self._k.sum(x, *(a for a in x.axes if a not in self._axes))

    def _add(self, passed: Tile) -> None:
        self._gradient = passed if self._gradient is None else self._gradient + passed

    def _columns(self, x: Tile) -> Tile:
        return self._k.rename(x, self._tokens.row, self._tokens.column)

    def _rows(self, x: Tile) -> Tile:
        return self._k.rename(x, self._tokens.column, self._tokens.row)


class HeadDecay(Decay):
    """A decay of one number a token and head, or λ = 1: a factor of each pair."""

    def pairs(self, x: Tile, y: Tile, early: bool, name: str) -> Tile:
        """Returns the products of all keys, times the decay between the tokens."""
        part = self._tokens.triangle(early)
        product = self._k.dot(x, self._columns(y), self._keys, out=part)
        return self._k.named(name, self._decayed(product, early))

    def pull_row(self, weights: Tile, x: Tile, y: Tile, early: bool) -> Tile:
        """Returns Σ_j weights_ij decay_ij y_j; takes in what passes between tokens."""
        part = self._tokens.triangle(early)
        decayed = self._decayed(weights, early)
        if self._factor is not None:
            pairs = self._k.dot(x, self._columns(y), self._keys, out=part)
            passed = self._k.cumulate(
                "sum", decayed * pairs, self._tokens.row, reverse=True, exclusive=early
            )
            column = self._k.index(self._tokens.column)
            before = self._k.where(self._k.less(column, self._row_index), passed, 0.0)
            self._add(self._k.sum(before, self._tokens.column))
        return self._k.dot(decayed, self._columns(y), self._tokens.column, left_part=part)

    def pull_column(self, weights: Tile, x: Tile, y: Tile, early: bool) -> Tile:
        """Returns Σ_i weights_ij decay_ij x_i."""
        part = self._tokens.triangle(early)
        decayed = self._decayed(weights, early)
        return self._rows(self._k.dot(decayed, x, self._tokens.row, left_part=part))

    def _decayed(self, pairs: Tile, early: bool) -> Tile:
        if self._factor is None:
            return pairs
        row, column = self._tokens.row, self._tokens.column
        name = "between_early" if early else "between"
        between = self._k.named(name, self._k.between(self._factor, row, row, column, early))
        return pairs * between


class KeyDecay(Decay):
    """A decay of keys: the pairs are made level by level, each decay up to the blocks' middle."""

    def pairs(self, x: Tile, y: Tile, early: bool, name: str) -> Tile:
        """Returns the sum of all levels, and of the tokens by themselves."""
        total = None if early else self._diagonal(self._k.sum(x * y, self._keys))
        for block in self._blocks:
            to, since = self._level(block, early)
            part = self._tokens.triangle(early, block)
            level = self._k.dot(x * to, self._columns(y * since), self._keys, out=part)
            total = level if total is None else total + level
        assert total is not None
        return self._k.named(name, total)

    def pull_row(self, weights: Tile, x: Tile, y: Tile, early: bool) -> Tile:
        """Returns the gradient of the reads; takes in what passes from the middles to them."""
        total = None if early else self._on_diagonal(weights) * y
        for block in self._blocks:
            to, since = self._level(block, early)
            part = self._tokens.triangle(early, block)
            column = self._tokens.column
            dot = self._k.dot(weights, self._columns(y * since), column, left_part=part)
            step = dot * to
            row = self._tokens.row
            self._add(
                self._k.cumulate("sum", x * step, row, reverse=True, exclusive=early, block=block)
            )
            total = step if total is None else total + step
        assert total is not None
        return total

    def pull_column(self, weights: Tile, x: Tile, y: Tile, early: bool) -> Tile:
        """Returns the gradient of the writes; takes in what passes from them to the middles."""
        total = None if early else self._on_diagonal(weights) * x
        for block in self._blocks:
            to, since = self._level(block, early)
            part = self._tokens.triangle(early, block)
            row = self._tokens.row
            step = self._rows(self._k.dot(weights, x * to, row, left_part=part)) * since
            self._add(self._k.cumulate("sum", y * step, row, exclusive=True, block=block))
            total = step if total is None else total + step
        assert total is not None
        return total

    @property
    def _blocks(self) -> list[int]:
        """Halves of blocks of 2, 4, … tokens."""
        return [1 << m for m in range(self._tokens.size.bit_length() - 1)]

    def _level(self, block: int, early: bool) -> tuple[Tile, Tile]:
        """The decays from a middle to each token of the second half, and to it from the first."""
        to = self._product(exclusive=early, block=block)
        since = self._product(reverse=True, exclusive=True, block=block)
        word = "early" if early else "to"
        return self._k.named(f"{word}_{block}", to), self._k.named(f"since_{block}", since)

    def _on_diagonal(self, pairs: Tile) -> Tile:
        return self._k.sum(self._k.where(self._same, pairs, 0.0), self._tokens.column)

    def _diagonal(self, x: Tile) -> Tile:
        return self._k.where(self._same, x, 0.0)

    @property
    def _same(self) -> Tile:
        return self._k.equal(self._row_index, self._k.index(self._tokens.column))
