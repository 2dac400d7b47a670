"""The decay inside one chunk of tokens: what multiplies what, without an exponential but its own.

    products(x, y)_ij = Σ_n x_in y_jn Π_{j < t ≤ i} λ_tn     (early: j < t < i; strict: 0 for j ≥ i)

Products of decays are made as products, never as quotients or as exponentials of differences: a
decay of 0 is exact, and nothing overflows. A decay of heads is a factor of each pair. One of keys
is not: there the pairs are made level by level. At level m, rows in the second half and columns in
the first half of a block of 2 m tokens meet at its middle, each with its decay up to there.

The gradient of log λ at a token is what passes over it: Σ of all that was written before it, and is
read from it on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import Axis, Int, Part, Triangle, power_of_two


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

    def triangle(self, strict: bool, block: Int | None = None) -> Triangle:
        """Returns which pairs of tokens there are."""
        part = Part.STRICTLY_LOWER if strict else Part.LOWER
        return Triangle(self.row, self.column, part, block)


@dataclass(frozen=True)
class Pair:
    """A read and a write inside one chunk.

    Attributes:
        read, write: names.
        x: the read, over (row, keys).
        y: the write, over (row, keys).
        early: whether the read is of the state before the token's decay.
        strict: whether it is of the state before the token's own writes.
    """

    read: str
    write: str
    x: Tile
    y: Tile
    early: bool
    strict: bool

    @property
    def name(self) -> str:
        """Name of the products."""
        return f"{self.read}_{self.write}"


@dataclass(frozen=True)
class Pulled:
    """A pair whose gradient is known.

    Attributes:
        pair: the read and the write.
        weights: the gradient of their products.
        products: these, decayed; a decay of keys does not ask for them.
    """

    pair: Pair
    weights: Tile
    products: Tile | None = None


class Sums(dict[str, Tile]):
    """Sums of tiles by name."""

    def add(self, name: str, tile: Tile) -> None:
        """Adds a tile to the sum of a name."""
        self[name] = self[name] + tile if name in self else tile


class Decay(ABC):
    """The decay of a chunk, or λ = 1.

    It is used forwards (`products`, `head`, `tail`, `whole`) and then pulled back: each product of
    the forward pass says, by the methods named `pull` and `pull_…`, what it gives to the gradients,
    and `gradient` is then that of log λ.
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
    def products(self, pairs: Sequence[Pair], onto: Sequence[Tile] = ()) -> list[Tile]:
        """Returns all products of each pair inside the chunk, decayed.

        Args:
            pairs: the pairs.
            onto: what is added to them, such as the products of other keys.
        """

    # --- backwards --------------------------------------------------------------------------------

    @abstractmethod
    def pull(self, pairs: Sequence[Pulled], reads: Sums, writes: Sums) -> None:
        """Takes in what passes inside the chunk.

        Args:
            pairs: pairs of reads and writes, with gradients.
            reads: sums that the gradients of the reads are added to.
            writes: sums that the gradients of the writes are added to.
        """

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

    def pull_whole(self, product: Tile) -> None:
        """Takes in what passes over the whole chunk: Σ_channels state · gradient, over keys."""
        if self._factor is not None:
            whole = self.whole
            assert whole is not None
            self._add(self._own(product) * whole)

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

    def products(self, pairs: Sequence[Pair], onto: Sequence[Tile] = ()) -> list[Tile]:
        """Returns the products of all keys, times the decay between the tokens."""
        out = []
        for p in pairs:
            part = self._tokens.triangle(p.strict)
            product = self._k.dot(p.x, self._columns(p.y), self._keys, out=part)
            out.append(self._k.named(p.name, self._decayed(product, p.early)))
        return [x + before for x, before in zip(out, onto, strict=True)] if onto else out

    def pull(self, pairs: Sequence[Pulled], reads: Sums, writes: Sums) -> None:
        """Adds Σ_j weights_ij decay_ij y_j and Σ_i weights_ij decay_ij x_i."""
        row, column = self._tokens.row, self._tokens.column
        passing = Sums()
        for x in pairs:
            p, part = x.pair, self._tokens.triangle(x.pair.strict)
            if self._factor is not None:
                assert x.products is not None
                passing.add("early" if p.early else "head", x.weights * x.products)
            weights = self._decayed(x.weights, p.early)
            reads.add(p.read, self._k.dot(weights, self._columns(p.y), column, left_part=part))
            step = self._k.dot(weights, p.x, row, left_part=part)
            writes.add(p.write, self._rows(step))
        for word, products in passing.items():
            early = word == "early"
            passed = self._k.cumulate("sum", products, row, reverse=True, exclusive=early)
            before = self._k.less(self._k.index(column), self._row_index)
            self._add(self._k.sum(self._k.where(before, passed, 0.0), column))

    def _decayed(self, pairs: Tile, early: bool) -> Tile:
        if self._factor is None:
            return pairs
        row, column = self._tokens.row, self._tokens.column
        name = "between_early" if early else "between"
        between = self._k.named(name, self._k.between(self._factor, row, row, column, early))
        return pairs * between


class KeyDecay(Decay):
    """A decay of keys: the pairs are made level by level, each decay up to the blocks' middle."""

    def products(self, pairs: Sequence[Pair], onto: Sequence[Tile] = ()) -> list[Tile]:
        """Returns the sum of all levels, and of the tokens by themselves."""
        totals = Sums((p.name, x) for p, x in zip(pairs, onto, strict=False))
        for p in pairs:
            if not p.strict:
                totals.add(p.name, self._diagonal(self._k.sum(p.x * p.y, self._keys)))
        self._add_levels(pairs, totals)
        return [self._k.named(p.name, totals[p.name]) for p in pairs]

    def _add_levels(self, pairs: Sequence[Pair], totals: Sums) -> None:
        """Adds the products of all levels."""
        for block in self._blocks:
            for name, product in self._products(pairs, block):
                totals.add(name, product)

    def _products(self, pairs: Sequence[Pair], block: Int) -> Iterator[tuple[str, Tile]]:
        """Yields what rows in second halves of blocks of 2 `block` tokens have of first halves."""
        for p in pairs:
            to, since = self._level(block, p.early)
            part = self._tokens.triangle(p.strict, block)
            y = self._columns(p.y * since)
            yield p.name, self._k.dot(p.x * to, y, self._keys, out=part)

    def pull(self, pairs: Sequence[Pulled], reads: Sums, writes: Sums) -> None:
        """Adds the gradients; takes in what passes to the middles and from them."""
        for x in pairs:
            if not x.pair.strict:
                own = self._on_diagonal(x.weights)
                reads.add(x.pair.read, own * x.pair.y)
                writes.add(x.pair.write, own * x.pair.x)
        self._pull_levels(pairs, reads, writes)

    def _pull_levels(self, pairs: Sequence[Pulled], reads: Sums, writes: Sums) -> None:
        """Adds the gradients of all levels."""
        for block in self._blocks:
            self._add(self._pull_level(block, pairs, reads, writes))

    def _pull_level(self, block: Int, pairs: Sequence[Pulled], reads: Sums, writes: Sums) -> Tile:
        """Adds what the halves of blocks of 2 `block` tokens give each other; returns dlog λ."""
        row, column = self._tokens.row, self._tokens.column
        to_reads, from_writes, passing = Sums(), Sums(), Sums()
        for x in pairs:
            p, part = x.pair, self._tokens.triangle(x.pair.strict, block)
            to, since = self._level(block, p.early)
            y = self._columns(p.y * since)
            to_reads.add(p.read, self._k.dot(x.weights, y, column, left_part=part))
            step = self._k.dot(x.weights, p.x * to, row, left_part=part)
            from_writes.add(p.write, self._rows(step))
        for p in {x.pair.read: x.pair for x in pairs}.values():
            step = to_reads[p.read] * self._level(block, p.early)[0]
            reads.add(p.read, step)
            passing.add("early" if p.early else "to", p.x * step)
        for p in {x.pair.write: x.pair for x in pairs}.values():
            step = from_writes[p.write] * self._level(block, p.early)[1]
            writes.add(p.write, step)
            passing.add("since", p.y * step)
        return self._passed(passing, block)

    def _passed(self, passing: Sums, block: Int) -> Tile:
        """Returns what passes to the middles of blocks, and from them."""
        assert isinstance(block, int)
        row, total = self._tokens.row, Sums()
        for word, products in passing.items():
            reverse, exclusive = word != "since", word != "to"
            passed = self._k.cumulate(
                "sum", products, row, reverse=reverse, exclusive=exclusive, block=block
            )
            total.add("", passed)
        return total[""]

    @property
    def _blocks(self) -> list[int]:
        """Halves of blocks of 2, 4, … tokens."""
        return [1 << m for m in range(self._tokens.size.bit_length() - 1)]

    def _level(self, block: Int, early: bool) -> tuple[Tile, Tile]:
        """The decays from a middle to each token of the second half, and to it from the first."""
        assert isinstance(block, int)
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


_NOTHING = -1e4
"""The logarithm of what is 0 in any precision: sums of it are numbers, those of -∞ times 0 none."""


class LogKeyDecay(KeyDecay):
    """A decay of keys, of which sums of logarithms are taken: products with matrices of 0 and 1.

    Each sum is of what lies between two tokens, and never the difference of two sums: a decay of 0
    is 0 behind its token, and nothing before it.
    """

    def __init__(self, builder: KernelBuilder, tokens: Tokens, keys: Axis, log_decay: Tile) -> None:
        super().__init__(builder, tokens, keys, builder.map("max", log_decay, _NOTHING))

    @property
    def whole(self) -> Tile | None:
        """The decay over the chunk."""
        assert self._factor is not None
        return self._exp(self._k.sum(self._factor, self._tokens.row), "whole")

    def _product(
        self, *, reverse: bool = False, exclusive: bool = False, block: int | None = None
    ) -> Tile:
        assert self._factor is not None and block is None
        row = self._tokens.row
        total = self._k.cumulate("sum", self._factor, row, reverse=reverse, exclusive=exclusive)
        return self._k.map("exp", total, free=True)

    def _add_levels(self, pairs: Sequence[Pair], totals: Sums) -> None:
        """Adds the products of all levels, in a loop: registers hold what one of them takes."""
        row, column = self._tokens.row, self._tokens.column
        first = {p.name: totals.get(p.name, self._k.zeros(row, column)) for p in pairs}
        with self._k.loop("level", len(self._blocks), reverse=False, **first) as loop:
            products = dict(self._products(pairs, power_of_two(loop.counter)))
            loop.next(**{name: loop[name] + x for name, x in products.items()})
        totals |= {p.name: loop.last(p.name) for p in pairs}

    def _pull_levels(self, pairs: Sequence[Pulled], reads: Sums, writes: Sums) -> None:
        """Adds the gradients of all levels, in a loop."""
        zeros = self._k.zeros(self._tokens.row, self._keys)
        sums = {"read": reads, "write": writes}
        names = {*(("read", x.pair.read) for x in pairs), *(("write", x.pair.write) for x in pairs)}
        first = {f"{w}_{n}": sums[w].get(n, zeros) for w, n in sorted(names)}
        first["log"] = zeros
        with self._k.loop("level", len(self._blocks), reverse=False, **first) as loop:
            inner = {w: Sums({n: loop[f"{w}_{n}"] for v, n in names if v == w}) for w in sums}
            block = power_of_two(loop.counter)
            passed = self._pull_level(block, pairs, inner["read"], inner["write"])
            following = {f"{w}_{n}": inner[w][n] for w, n in names}
            loop.next(**following, log=loop["log"] + passed)
        for w, n in names:
            sums[w][n] = loop.last(f"{w}_{n}")
        self._add(loop.last("log"))

    def _level(self, block: Int, early: bool) -> tuple[Tile, Tile]:
        """The decay between each token and the middle: one tile has both halves."""
        since = self._to_middle(block, False)
        return self._to_middle(block, early), since

    def _to_middle(self, block: Int, early: bool) -> Tile:
        assert self._factor is not None
        total = self._k.to_middle(self._factor, self._tokens.row, block, exclusive=early)
        return self._exp(total, "early_to_middle" if early else "to_middle")

    def _passed(self, passing: Sums, block: Int) -> Tile:
        both, total = Sums(), Sums()
        for word, products in passing.items():
            both.add("early" if word == "early" else "to", products)
        for word, products in both.items():
            early, row = word == "early", self._tokens.row
            passed = self._k.to_middle(products, row, block, exclusive=early, back=True)
            total.add("", passed)
        return total[""]

    def _exp(self, total: Tile, name: str) -> Tile:
        return self._k.named(name, self._k.map("exp", total, free=True))
