"""The matrix form: a chunk of tokens is a few products of matrices."""

from __future__ import annotations

from dsfc.plan.scan_ir import Factor, Group, RoleScan, ScanDirection

from .contractions import contraction, updated
from .skeletons import VARIABLE, Skeleton


class MatrixSkeleton(Skeleton):
    """A scan whose decay has head axes only, over arguments `[B, L, h, n]`, `[B, L, h, p]`."""

    @property
    def lift(self) -> str:
        """Index that gives the decay of one token the state's axes."""
        return "[..., None, None]"

    def _row(self, name: str) -> str:
        """Text of an argument at the only token, as a row."""
        return f"{name}.unsqueeze(1)" if self.shared and name != "v" else f"{name}.transpose(1, 2)"

    def _column(self, name: str) -> str:
        """Text of an argument at the only token, as a column."""
        return f"{name}.unsqueeze(-1)" if self.shared else f"{name}.permute(0, 2, 3, 1)"

    @property
    def _only_decay(self) -> list[str]:
        """Statements that give the decay of the only token, if there is one."""
        keyed = self.lift == "[..., None]"
        decay = f"torch.exp({self._column('g')})" if keyed else "torch.exp(g).mT.unsqueeze(-1)"
        return [f"decay = {decay}"] if self.decay else []

    @property
    def _only_update(self) -> list[str]:
        """Statements that give the state after the only token."""
        kept = "decay * S" if self.decay else "S"
        update = f"S = torch.addcmul({kept}, {self._column('k')}, {self._row('v')})"
        return [*self._only_decay, update]

    @property
    def one_token(self) -> str:
        """Returns early for one token: a view costs as much as a product, and it needs half."""
        head = "    if v.shape[1] == 1:  # its axis of time is the one that rows and columns lack"
        out = f"_as(({self._row('q')} @ S).transpose(1, 2), like.dtype)"
        state = self.as_state("S", "like")
        last = (
            [f"return {out}, {state}"] if state == "S" else [f"out = {out}", f"return out, {state}"]
        )
        return "\n        ".join([head, *self._only_update, *last])

    @property
    def flops_shape(self) -> str:
        """Reads the sizes off the shapes."""
        return "(B, L, h, p), n = v, k[-1]"

    @property
    def forward_flops(self) -> str:
        """Operations of the forward pass."""
        return "B * L * h * (2 * CHUNK * (n + p) + 4 * n * p)"

    @property
    def backward_flops(self) -> str:
        """Operations of the backward pass."""
        return "B * L * h * (2 * CHUNK * (3 * n + 2 * p) + 10 * n * p)"

    def _step(self, f: Factor) -> str:
        """Subscripts of a factor at one token."""
        if f in (Factor.READ, Factor.KEY):
            return "Bn" if self.shared else "Bhn"
        return "Bhp"

    @property
    def drive(self) -> str:
        """Key ⊗ value at one token."""
        return f"{self._step(Factor.KEY)},Bhp->Bhnp"

    @property
    def look(self) -> str:
        """Σ read · state at one token."""
        return f"{self._step(Factor.READ)},Bhnp->Bhp"

    def updated(self, state: str, decay: str, key: str, value: str) -> str:
        """Text of the state after one token; its decay is used if there is one."""
        return updated(state, decay if self.decay else None, self.drive, key, value)

    def added(self, state: str, key: str, value: str) -> str:
        """Text of a state and key ⊗ value at one token."""
        return updated(state, None, self.drive, key, value)

    def looked(self, read: str, state: str) -> str:
        """Text of Σ read · state at one token."""
        return contraction(self.look, read, state)

    @property
    def state_back(self) -> str:
        """Text of the gradient of the state behind token i, and what the token adds to it."""
        equation = f"{self._step(self.back.key)},{self._step(self.back.value)}->Bhnp"
        return updated("dS", None, equation, f"{self.back_key}[i]", f"{self.back_value}[i]")

    def paired(self, left: str, right: str) -> str:
        """Text of the pairing of both directions' states at one token."""
        return contraction(self.pair_states, left, right)

    def _steps(self, direction: ScanDirection) -> list[str]:
        state = "S" if direction is ScanDirection.FORWARD else "dS"
        lines = []
        for s in self.adjoint.scans:
            if s.direction is direction:
                subscripts = f"{self._step(s.read)},Bhnp->{self._step(s.result)}"
                value = contraction(subscripts, f"{VARIABLE[s.read]}[i]", state)
                lines.append(f"d{VARIABLE[s.result]}.append({value})")
        return lines

    @property
    def step_forward(self) -> list[str]:
        """Gradients read from the forward state at one token."""
        return self._steps(ScanDirection.FORWARD)

    @property
    def step_reverse(self) -> list[str]:
        """Gradients read from the reversed state at one token."""
        return self._steps(ScanDirection.REVERSE)

    @property
    def rows_in_time(self) -> str:
        """The rows of each gradient in the order of time."""
        reverse = {
            f"d{VARIABLE[s.result]}"
            for s in self.adjoint.scans
            if s.direction is ScanDirection.REVERSE
        }
        return ", ".join(f"{g}[::-1]" if g in reverse else g for g in self.timed_grads)

    @property
    def before_equation(self) -> str:
        """Σ read · state before the update, over a time axis of length at most 1."""
        return f"{self._step(Factor.READ).replace('B', 'BL')},Bhnp->BLhp"

    # --- lines of the matrix form, in chunks ------------------------------------------------------

    def _scores(self, later: Factor, earlier: Factor) -> tuple[str, str]:
        """Variable and text of all products of two factors inside a chunk."""
        x, y = VARIABLE[later], VARIABLE[earlier]
        return f"{x}_{y}", f"{x}_t @ {y}_t.mT"

    def _needs(self, s: RoleScan) -> tuple[Factor, Factor, Factor]:
        """(later, earlier) factors of the products a role scan needs, and what it weighs."""
        other = s.key if s.contracted is Group.KEYS else s.value
        weighed = s.value if s.contracted is Group.KEYS else s.key
        pair = (s.read, other) if s.direction is ScanDirection.FORWARD else (other, s.read)
        return (*pair, weighed)

    def block(self, names: list[str]) -> str:
        """A statement that cuts a block of arguments into chunks."""
        targets = ", ".join(f"{name}_t" for name in names)
        split = f"(_split(x[:, at], chunk) for x in ({', '.join(names)}))"
        return f"        {targets} = {split}"

    @property
    def driving(self) -> list[str]:
        """Arguments of the recurrence itself."""
        return ["k", "v", "g"] if self.decay else ["k", "v"]

    @property
    def blocks(self) -> str:
        """Slices of time that are computed at once."""
        return "_blocks(v, S, chunk, mode, BLOCK)"

    @property
    def around(self) -> list[str]:
        """Statements that give the decays from and to the ends of a chunk."""
        return ["head, tail = _decays_around(g_t)"] if self.decay else []

    @property
    def advance(self) -> str:
        """The states that enter a block's chunks, and the one that leaves."""
        if not self.decay:
            return "_carry(k_t.mT @ v_t, S, None, mode)"
        return "_carry(k_t.mT @ (v_t * tail), S, head[..., -1:, :], mode)"

    @property
    def forward_lines(self) -> list[str]:
        """The output: from inside the chunk, and from before it."""
        name, text = self._scores(Factor.READ, Factor.KEY)
        masked = f"{text} * _decays_between(g_t)" if self.decay else f"({text}).tril_()"
        head = ".mul_(head)" if self.decay else ""
        return [
            f"{name} = {masked}",
            f"_join((q_t @ past){head}.add_({name} @ v_t), rows[:, at])",
        ]

    def gradients(self) -> str:
        """A statement that makes room for the gradients."""
        names = self.inputs
        empties = f"(x.new_empty(x.shape) for x in ({', '.join(names)}))"
        return f"    {', '.join(self.grads)} = {empties}"

    @property
    def backward_lines(self) -> list[str]:
        """All gradients of a block: from the states around its chunks, and from inside them."""
        scans = self.adjoint.scans
        scores = dict(self._scores(*self._needs(s)[:2]) for s in scans)
        masked = "{} = {}" if self.decay else "{} = ({}).tril_()"
        lines = [*self._retreat, *(masked.format(*each) for each in sorted(scores.items()))]
        if self.decay:
            lines += [f"d{VARIABLE[s.result]}_t = {self._from_states(s)}" for s in scans]
            lines += self._decay_gradient(sorted(scores))
            lines += [f"d{VARIABLE[s.result]}_t += {self._from_inside(s)}" for s in scans]
        for s in scans:
            x = VARIABLE[s.result]
            text = f"d{x}_t" if self.decay else f"{self._from_states(s)} + {self._from_inside(s)}"
            if self.shared and s.contracted is Group.CHANNELS:
                text = f"({text}).sum(1, keepdim=True)"
            lines.append(f"_join({text}, d{x}[:, at])")
        return lines

    @property
    def _retreat(self) -> list[str]:
        """The same as `advance`, from the end of time on."""
        key, value = self.back_key, self.back_value
        if not self.decay:
            carry = f"_carry({key}_t.mT @ {value}_t, dS, None, mode, reverse=True)"
            return [f"future, dS = {carry}"]
        return [
            "pair, (head, tail) = _decays_between(g_t), _decays_around(g_t)",
            f"whole, v_tail, {value}_head = head[..., -1:, :], v_t * tail, {value}_t * head",
            f"drive = {key}_t.mT @ {value}_head",
            "future, dS = _carry(drive, dS, whole, mode, reverse=True)",
        ]

    def _from_states(self, s: RoleScan) -> str:
        """What a gradient has from outside the chunk."""
        forward = s.direction is ScanDirection.FORWARD
        carried, scale = ("past", "head") if forward else ("future", "tail")
        read = VARIABLE[s.read]
        if s.contracted is Group.CHANNELS:
            return f"{read}_{scale if self.decay else 't'} @ {carried}.mT"
        product = f"{read}_t @ {carried}"
        return f"({product}).mul_({scale})" if self.decay else product

    def _from_inside(self, s: RoleScan) -> str:
        """What a gradient has from inside the chunk."""
        later, earlier, weighed = self._needs(s)
        name, _ = self._scores(later, earlier)
        turned = "" if s.direction is ScanDirection.FORWARD else ".mT"
        return f"{name}{turned} @ {VARIABLE[weighed]}_t"

    def _decay_gradient(self, scores: list[str]) -> list[str]:
        """What passes over a token is the gradient of its log λ; then λ joins the products."""
        left, right = (
            next(VARIABLE[s.result] for s in self.adjoint.scans if s.direction is direction)
            for direction in (ScanDirection.FORWARD, ScanDirection.REVERSE)
        )
        last, *others = reversed(scores)
        return [
            f"{last} = {last} * pair" if self.shared else f"{last} *= pair",
            f"left, right = ({left}_t * d{left}_t).sum(-1), ({right}_t * d{right}_t).sum(-1)",
            "across = (past * future).sum((-2, -1)) * whole.flatten(2)",
            f"dg_t = _straddle({' * '.join(scores)}, left, right, across)",
            "_join(dg_t, dg[:, at])",
            *(f"{name} *= pair" for name in others),
        ]

    @property
    def pair_states(self) -> str:
        """Subscripts of the pairing of both directions' states at one token."""
        return f"Bhnp,Bhnp->B{self._kept}"

    @property
    def _kept(self) -> str:
        """Letters of the state's axes that the decay has; a group without axes has size 1."""
        assert self.adjoint.pairing is not None
        summed = set(self.adjoint.pairing.summed)
        groups = {"n": self.scan.keys, "p": self.scan.channels}
        return "h" + "".join(c for c, axes in groups.items() if not summed.issuperset(axes))

    def returned(self) -> str:
        """Returns the gradients in the shape of the arguments."""
        keyed = ("dq", "dk") if self.shared else ()
        grads = [f"{g}.squeeze(2)" if g in keyed else g for g in self.grads]
        return f"    return {', '.join(grads)}, dS"
