"""The low-rank form: a chunk of tokens is a triangular system and a few products of matrices."""

from __future__ import annotations

from dsfc.plan.scan_ir import Factor, Group, Moment, RoleScan, ScanDirection

from .contractions import contraction
from .matrix import MatrixSkeleton
from .skeletons import VARIABLE

_DRIVES = {
    ScanDirection.FORWARD: ((Factor.KEY, Factor.VALUE), (Factor.LEFT, Factor.WY)),
    ScanDirection.REVERSE: ((Factor.READ, Factor.COTANGENT), (Factor.RIGHT, Factor.WY_BAR)),
}
"""What is added to the state of each direction, key ⊗ value."""


class LowRankSkeleton(MatrixSkeleton):
    """A scan that rewrites its state in one direction, a ⊗ (b · S), over arguments `[B, L, h, n]`.

    Once the WY terms e = b · S of the tokens of a chunk are known, the scan is one of the matrix
    form with two keys and values a token: k ⊗ v and a ⊗ e. A WY term is a sum over earlier tokens
    and the state that enters the chunk, so all of them are e = u + w · S: a triangular system,
    solved once for both. The reversed recurrence has q ⊗ do and, before the decay, b ⊗ de, with the
    transposed system.
    """

    @property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the decay's."""
        return ["q", "k", "v", "a", "b"]

    @property
    def at_token(self) -> str:
        """Names of the arguments at one token."""
        return ", ".join(f"{x}_i" for x in self.timed)

    @property
    def _only_update(self) -> list[str]:
        """Statements that give the state after the only token, and its WY term."""
        wy = f"e = {self._row('b')} @ S"
        return [wy, *super()._only_update, f"S = torch.addcmul(S, {self._column('a')}, e)"]

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "B * L * h * (7 * CHUNK * (n + p) + 4 * n * p + 2 * n * (n + p))"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "B * L * h * (30 * CHUNK * (n + p) + 20 * n * p + 4 * n * (n + p))"

    def _step(self, f: Factor) -> str:
        """Subscripts of a factor at one token."""
        with_keys = (Factor.READ, Factor.KEY, Factor.LEFT, Factor.RIGHT)
        return "Bhn" if f in with_keys else "Bhp"

    def _steps(self, direction: ScanDirection) -> list[str]:
        lines = []
        for s in self.adjoint.scans:
            if s.direction is direction:
                forward = "past" if s.moment is Moment.BEFORE else "S"
                state = "dS" if direction is ScanDirection.REVERSE else forward
                subscripts = f"{self._step(s.read)},Bhnp->{self._step(s.result)}"
                whole = s.read in (Factor.WY, Factor.WY_BAR)
                read = VARIABLE[s.read] + ("" if whole else "[i]")
                value = contraction(subscripts, read, state)
                lines.append(f"d{VARIABLE[s.result]}.append({value})")
        return lines

    # --- lines of the chunks ----------------------------------------------------------------------

    @property
    def reach(self) -> str:
        """Calls what gives the decays inside a chunk, and from and to its ends."""
        return "_reach(g_t)" if self.decay else "_reach_undecayed(v_t)"

    @property
    def driving(self) -> list[str]:
        """Arguments of the recurrence itself."""
        return ["k", "v", "a", "b", "g"] if self.decay else ["k", "v", "a", "b"]

    @property
    def around(self) -> list[str]:
        """Statements before `advance`."""
        return [
            f"_, before, _, early, tail, whole = {self.reach}",
            "b_k, _, w, u = _wy(k_t, v_t, a_t, b_t, before, early)",
            "a_tail = a_t * tail",
            "move = _move(a_tail, w, whole)",
            "drive = (k_t * tail).mT @ v_t + a_tail.mT @ u",
        ]

    @property
    def advance(self) -> str:
        """The states that enter a block's chunks, and the one that leaves."""
        return "_carry_matrices(move, drive, S, mode)"

    def _states_part(self, s: RoleScan) -> str:
        """What a gradient has from outside the chunk."""
        read = f"{VARIABLE[s.read]}_t"
        reverse = s.direction is ScanDirection.REVERSE
        scale = "tail" if reverse else "early" if s.moment is Moment.BEFORE else "head"
        carried = "future" if reverse else "past"
        if s.contracted is Group.KEYS:
            return f"({read} * {scale}) @ {carried}"
        return f"({read} @ {carried}.mT).mul_({scale})"

    def _inside_parts(self, s: RoleScan) -> list[str]:
        """What a gradient has from the pairs of a chunk."""
        out = []
        for key, value in _DRIVES[s.direction]:
            met, weighed = (value, key) if s.contracted is Group.CHANNELS else (key, value)
            pair = (s.read, met) if s.direction is ScanDirection.FORWARD else (met, s.read)
            name = "_".join(VARIABLE[f] for f in pair)
            turned = "" if s.direction is ScanDirection.FORWARD else ".mT"
            out.append(f"{name}{turned} @ {VARIABLE[weighed]}_t")
        return out

    @property
    def gradient_lines(self) -> list[str]:
        """All gradients of a block, once the WY terms of both directions are known."""
        scans = self.adjoint.scans
        lines = [f"d{VARIABLE[s.result]}_t = {self._states_part(s)}" for s in scans]
        values = [(x, y) for x in ("do", "de") for y in ("v", "e")]
        lines += [f"{x}_{y} = {x}_t @ {y}_t.mT" for x, y in values]
        if self.decay:
            lines += self._decay_lines
        masks = {"do": "pair", "de": "before"}
        lines += [f"{x}_{y} *= {masks[x]}" for x, y in values]
        for s in scans:
            x = VARIABLE[s.result]
            lines += [f"d{x}_t += {part}" for part in self._inside_parts(s)]
            lines.append(f"_join(d{x}_t, d{x}[:, at])")
        return lines

    @property
    def _decay_lines(self) -> list[str]:
        """What passes over a token is the gradient of its log λ.

        What is read before a token's decay passes over one token less.
        """
        ends: dict[str, list[str]] = {"left": [], "right": []}
        for s in self.adjoint.scans:
            if s.contracted is Group.CHANNELS:
                x = VARIABLE[s.result]
                end = f"({x}_t * d{x}_t).sum(-1)"
                side = "right" if s.direction is ScanDirection.REVERSE else "left"
                early = s.moment is Moment.BEFORE
                ends[side].append(f"F.pad({end}[..., 1:], (0, 1))" if early else end)
        return [
            "early_pairs = b_k * de_v + b_a * de_e",
            "pairs = q_k * do_v + q_a * do_e + F.pad(early_pairs[..., 1:, :], (0, 0, 0, 1))",
            *(f"{side} = {' + '.join(parts)}" for side, parts in ends.items()),
            "across = (past * future).sum((-2, -1)) * whole.flatten(2)",
            "dg_t = _straddle(pairs, left, right, across)",
            "_join(dg_t, dg[:, at])",
        ]


class KeyedLowRankSkeleton(LowRankSkeleton):
    """A scan with a low-rank part and a decay of keys, `[B, L, h, n]`.

    A token has two reads, q and the b of the next token, and two keys, k and a: with the state
    after a token as what is read, both see the same decays, and all products of a chunk are those
    of the keyed form with two rows a token. Ratios of decays have no bound inside a chunk, so
    those products are anchored at the middles of blocks, as there.
    """

    @property
    def lift(self) -> str:
        """Index that gives the decay of one token the state's axes."""
        return "[..., None]"

    @property
    def found(self) -> list[str]:
        """Statements that give all products of a chunk's keys, and its WY terms."""
        return [
            "reads, keys = _interleaved(q_t, _advanced(b_t)), _interleaved(k_t, a_t)",
            "scores, heads, tails, whole = _scores_of_two(reads, keys, g_t)",
            "b_a, b_early, w, u = _wy_of_two(scores, heads, b_t, v_t)",
        ]

    @property
    def around(self) -> list[str]:
        """Statements before `advance`."""
        return [
            "reads, keys = _interleaved(b_t, _advanced(b_t)), _interleaved(k_t, a_t)",
            "scores, heads, tails, whole = _scores_of_two(reads, keys, g_t)",
            "_, _, w, u = _wy_of_two(scores, heads, b_t, v_t)",
            "move = _move(tails[..., 1::2, :], w, whole)",
            "drive = tails.mT @ _interleaved(v_t, u)",
        ]

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "B * L * h * (8 * CHUNK * (n + p) + 4 * n * p + 2 * n * (n + p))"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "B * L * h * (40 * CHUNK * (n + p) + 20 * n * p + 4 * n * (n + p))"
