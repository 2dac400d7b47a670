"""The keyed form: a decay per key. Products in a chunk are anchored at the middles of blocks."""

from __future__ import annotations

from dsfc.plan.scan_ir import Group, RoleScan, ScanDirection

from .matrix import MatrixSkeleton
from .skeletons import VARIABLE


class KeyedSkeleton(MatrixSkeleton):
    """A scan whose decay has head and key axes, over arguments as in the matrix form.

    A pair of tokens of a chunk meets in one block of 2, 4, 8, … tokens whose middle lies between
    them: the later one is in its second half, the earlier one in its first. The decay between them
    is that from the earlier one to the middle times that from the middle to the later one, so no
    exponential is of a positive number, and none of a difference of sums.
    """

    @property
    def lift(self) -> str:
        """Index that gives the decay of one token the state's axes."""
        return "[..., None]"

    @property
    def around(self) -> list[str]:
        """Statements that give the decays to the end of a chunk, and over it."""
        return ["tail, whole = _tail(g_t)"]

    @property
    def advance(self) -> str:
        """The states that enter a block's chunks, and the one that leaves."""
        return "_carry((k_t * tail).mT @ v_t, S, whole, mode)"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "B * L * h * (2 * CHUNK * (4 * n + 2 * p) + 10 * n * p)"

    def _result(self, s: RoleScan) -> tuple[str, bool]:
        """Variable whose gradient a role scan gives, and whether it is read from the past."""
        return VARIABLE[s.result], s.direction is ScanDirection.FORWARD

    def _by(self, group: Group) -> list[RoleScan]:
        return [s for s in self.adjoint.scans if s.contracted is group]

    @property
    def values_of(self) -> str:
        """Variable and statement of the products of values inside a chunk."""
        later, earlier, _ = self._needs(self._by(Group.CHANNELS)[0])
        name, text = self._scores(later, earlier)
        return f"{name} = {text}"

    @property
    def values(self) -> str:
        """Variable of those products."""
        later, earlier, _ = self._needs(self._by(Group.CHANNELS)[0])
        return self._scores(later, earlier)[0]

    @property
    def found(self) -> str:
        """Statement of the products of keys inside a chunk, and of what they leave."""
        later, earlier, _ = self._needs(self._by(Group.KEYS)[0])
        q, k = VARIABLE[later], VARIABLE[earlier]
        return f"{q}_{k}, {q}_head, {k}_tail, whole = _scores({q}_t, {k}_t, g_t)"

    @property
    def keyed_gradients(self) -> list[str]:
        """Gradients of what has channels: from the chunk, then from the states around it."""
        lines = []
        for s in self._by(Group.KEYS):
            later, earlier, weighed = self._needs(s)
            x, past = self._result(s)
            q, k, w, read = (VARIABLE[f] for f in (later, earlier, weighed, s.read))
            turned = "" if past else ".mT"
            lines.append(f"d{x}_t = {q}_{k}{turned} @ {w}_t")
            carried, scale = ("past", "head") if past else ("future", "tail")
            lines.append(f"d{x}_t += {read}_{scale} @ {carried}")
        return lines

    @property
    def outer_gradients(self) -> list[str]:
        """Gradients of what has keys, from the states around the chunk."""
        lines = []
        for s in self._by(Group.CHANNELS):
            x, past = self._result(s)
            carried, scale = ("past", "head") if past else ("future", "tail")
            lines.append(f"d{x}_t = {VARIABLE[s.read]}_t @ {carried}.mT * {scale}")
        return lines

    @property
    def passes(self) -> str:
        """What passes over each token of a chunk, by the gradients found so far."""
        parts = []
        for s in self._by(Group.CHANNELS):
            x, past = self._result(s)
            function = "_until" if past else "_since"
            parts.append(f"{function}({x}_t * d{x}_t)")
        return " + ".join(parts)

    @property
    def own_gradients(self) -> list[str]:
        """Gradients of what has keys, from a token itself."""
        return [
            f"d{self._result(s)[0]}_t += own * {VARIABLE[s.key]}_t"
            for s in self._by(Group.CHANNELS)
        ]

    @property
    def block_gradients(self) -> list[str]:
        """Gradients of what has keys from the pairs that meet in blocks of one size."""
        lines = []
        for s in self._by(Group.CHANNELS):
            x, past = self._result(s)
            k = VARIABLE[s.key]
            if past:
                lines.append(f"step = pairs @ (_early({k}_t, size) * since) * to")
            else:
                lines.append(f"step = pairs.mT @ (_late({k}_t, size) * to) * since")
            half, over = ("late", "until") if past else ("early", "since")
            lines.append(f"_{half}(d{x}_t, size).add_(step)")
            lines.append(f"_{half}(dg_t, size).add_(_{over}(_{half}({x}_t, size) * step))")
        return lines
