"""The delta form: tokens rewrite what their key finds; a chunk is a triangular system of keys."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.plan.scan_ir import Factor, Group, Moment, RoleScan, ScanDirection

from .contractions import contraction
from .matrix import MatrixSkeleton
from .skeletons import VARIABLE

_DRIVES = {
    ScanDirection.FORWARD: ((Factor.KEY, Factor.WRITTEN),),
    ScanDirection.REVERSE: ((Factor.READ, Factor.COTANGENT), (Factor.KEY, Factor.RETRIEVED_BAR)),
}
"""Direction of a recurrence → the products key ⊗ value that it adds to its state."""


class DeltaSkeleton(MatrixSkeleton):
    """A scan with a delta rule, over arguments `[B, L, h, n]`, `[B, L, h, p]` and r `[B, L, h]`.

    A token finds f = k · λ S and writes k ⊗ e with e = v + r f. Once e is known, the scan is one of
    the matrix form with the values e. What a token finds is of earlier e and of the state that
    enters the chunk, so all of them are e = u + w · S: a triangular system, solved once for both.
    The reversed recurrence has q ⊗ do and, before the decay, k ⊗ r dv, with the transposed system.
    """

    @property
    def tokens(self) -> list[str]:
        """Arguments `[B, L, ...]` besides the decay's."""
        return ["q", "k", "v", "r"]

    @property
    def at_token(self) -> str:
        """Names of the arguments at one token."""
        return ", ".join(f"{x}_i" for x in self.timed)

    @property
    def _only_update(self) -> list[str]:
        """Statements that give the state after the only token."""
        decayed = [*self._only_decay, "S = decay * S"] if self.decay else []
        retrieved = "e = r.mT.unsqueeze(-1) * (k.transpose(1, 2) @ S)"
        written = f"{self._row('v')} + e"
        return [*decayed, retrieved, f"S = torch.addcmul(S, {self._column('k')}, {written})"]

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "B * L * h * (4 * CHUNK * (n + p) + 4 * n * p + 2 * n * (n + p))"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "B * L * h * (18 * CHUNK * (n + p) + 14 * n * p + 4 * n * (n + p))"

    def decayed(self, state: str, decay: str) -> str:
        """Text of a state after the decay of one token."""
        return f"{decay} * {state}" if self.decay else state

    @property
    def retrieved_back(self) -> str:
        """Text of the gradient of the value at one token."""
        return self.looked("k[i]", "dS")

    # --- gradients --------------------------------------------------------------------------------

    @property
    def _reads(self) -> list[RoleScan]:
        """The scans whose results are over keys; that of the value is found by the system."""
        return [s for s in self.adjoint.scans if s.contracted is Group.CHANNELS]

    @property
    def step_gradients(self) -> list[str]:
        """The gradients of one token, once what it finds is known in both directions."""
        states = {Moment.AFTER: "S", Moment.DECAYED: "F"}
        texts: dict[str, list[str]] = {}
        for s in self._reads:
            state = "dS" if s.direction is ScanDirection.REVERSE else states[s.moment]
            whole = s.read in (Factor.WRITTEN, Factor.RETRIEVED_BAR)
            read = VARIABLE[s.read] + ("" if whole else "[i]")
            text = contraction("Bhp,Bhnp->Bhn", read, state)
            texts.setdefault(VARIABLE[s.result], []).append(text)
        lines = [f"d{x}.append({' + '.join(parts)})" for x, parts in texts.items()]
        for p in self.adjoint.products:
            product = f"({VARIABLE[p.left]}_i * {VARIABLE[p.right]}_i).sum(-1)"
            lines.append(f"d{VARIABLE[p.result]}.append({product})")
        return lines

    @property
    def product_lines(self) -> list[str]:
        """Gradients of a block that are products of what both directions find."""
        return [
            f"d{VARIABLE[p.result]}_t = ({VARIABLE[p.left]}_t * {VARIABLE[p.right]}_t).sum(-1)"
            for p in self.adjoint.products
        ]

    # --- lines of the chunks ----------------------------------------------------------------------

    @property
    def reach(self) -> str:
        """Calls what gives the decays inside a chunk, and from and to its ends."""
        return "_reach(g_t)" if self.decay else "_reach_undecayed(v_t)"

    @property
    def driving(self) -> list[str]:
        """Arguments of the recurrence itself."""
        return ["k", "v", "r", "g"] if self.decay else ["k", "v", "r"]

    @property
    def around(self) -> list[str]:
        """Statements before `advance`."""
        return [
            f"pair, _, head, _, tail, whole = {self.reach}",
            "_, w, u = _written((k_t @ k_t.mT).mul_(pair), k_t * head, v_t, r_t)",
            "k_tail = k_t * tail",
        ]

    @property
    def advance(self) -> str:
        """The states that enter a block's chunks, and the one that leaves."""
        return "_carry_matrices(_move(k_tail, w, whole), k_tail.mT @ u, S, mode)"

    def _states_part(self, s: RoleScan) -> tuple[str, str]:
        """Returns variable and text of a gradient's term from the state outside the chunk."""
        reverse = s.direction is ScanDirection.REVERSE
        carried, scale = ("future", "tail") if reverse else ("past", "head")
        name = f"d{VARIABLE[s.result]}_{scale}"
        return name, f"({VARIABLE[s.read]}_t @ {carried}.mT).mul_({scale})"

    def _inside_parts(self, s: RoleScan) -> Iterator[str]:
        """Yields a gradient's terms from the pairs of tokens of a chunk."""
        for key, value in _DRIVES[s.direction]:
            forward = s.direction is ScanDirection.FORWARD
            pair = (s.read, value) if forward else (value, s.read)
            name = "_".join(VARIABLE[f] for f in pair)
            yield f"{name}{'' if forward else '.mT'} @ {VARIABLE[key]}_t"

    @property
    def gradient_lines(self) -> list[str]:
        """The gradients of a block over keys, once what is written is known both ways."""
        parts = [self._states_part(s) for s in self._reads]
        lines = [f"{name} = {text}" for name, text in parts]
        lines += [f"{x}_e = {x}_t @ e_t.mT" for x in ("do", "de")]
        if self.decay:
            lines += self._decay_lines(parts)
        lines += ["do_e *= pair", "de_e *= earlier"]
        sums: dict[str, list[str]] = {}
        for (name, _), s in zip(parts, self._reads, strict=True):
            sums.setdefault(VARIABLE[s.result], []).extend([name, *self._inside_parts(s)])
        for x, texts in sums.items():
            lines += [f"d{x}_t = {texts[0]}", *(f"d{x}_t += {text}" for text in texts[1:])]
        return lines

    def _decay_lines(self, parts: list[tuple[str, str]]) -> list[str]:
        """Statements for the gradient of log λ, the sum of all that passes over a token."""
        ends: dict[ScanDirection, list[str]] = {d: [] for d in ScanDirection}
        for (name, _), s in zip(parts, self._reads, strict=True):
            ends[s.direction].append(f"({VARIABLE[s.result]}_t * {name}).sum(-1)")
        left, right = (" + ".join(ends[d]) for d in ScanDirection)
        return [
            f"left = {left}",
            f"right = {right}",
            "across = (past * future).sum((-2, -1)) * whole.flatten(2)",
            "dg_t = _straddle(q_k * do_e + k_k * de_e, left, right, across)",
        ]


class KeyedDeltaSkeleton(DeltaSkeleton):
    """A scan with a delta rule and a decay of keys, `[B, L, h, n]`.

    Both reads of a token, q and k, are of one state: their products with the keys of the chunk are
    those of the keyed form, side by side.
    """

    @property
    def lift(self) -> str:
        """Index that gives the decay of one token the state's axes."""
        return "[..., None]"

    @property
    def around(self) -> list[str]:
        """Statements before `advance`."""
        return [
            "k_k, k_head, k_tail, whole = _scores(k_t, k_t, g_t)",
            "_, w, u = _written(k_k, k_head, v_t, r_t)",
        ]

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "B * L * h * (5 * CHUNK * (n + p) + 4 * n * p + 2 * n * (n + p))"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "B * L * h * (24 * CHUNK * (n + p) + 14 * n * p + 4 * n * (n + p))"
