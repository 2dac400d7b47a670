"""The matrix form: a chunk of tokens is a few products of matrices."""

from __future__ import annotations

from functools import cached_property

from dsfc.plan.ir import Factor, Group, RoleScan, ScanDirection

from .skeletons import VARIABLE, Skeleton


class MatrixSkeleton(Skeleton):
    """A scan whose decay has head axes only, over arguments `[B, L, h, n]`, `[B, L, h, p]`."""

    @property
    def lift(self) -> str:
        """Index that gives the decay of one token the state's axes."""
        return "[..., None, None]"

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

    def _chunk(self, f: Factor, time: str) -> str:
        """Subscripts of a factor in chunks."""
        if f in (Factor.READ, Factor.KEY):
            return f"BN{time}n" if self.shared else f"BhN{time}n"
        return f"BhN{time}p"

    @property
    def drive(self) -> str:
        """Key ⊗ value at one token."""
        return f"{self._step(Factor.KEY)},Bhp->Bhnp"

    @property
    def look(self) -> str:
        """Σ read · state at one token."""
        return f"{self._step(Factor.READ)},Bhnp->Bhp"

    @property
    def drive_back(self) -> str:
        """Key ⊗ value of the reversed recurrence, at one token."""
        return f"{self._step(self.back.key)},{self._step(self.back.value)}->Bhnp"

    def _steps(self, direction: ScanDirection) -> list[str]:
        state = "S" if direction is ScanDirection.FORWARD else "dS"
        lines = []
        for s in self.adjoint.scans:
            if s.direction is direction:
                subscripts = f"{self._step(s.read)},Bhnp->{self._step(s.result)}"
                value = f'torch.einsum("{subscripts}", {VARIABLE[s.read]}[i], {state})'
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

    def split(self, names: list[str]) -> str:
        """Statements that cut arguments into chunks, head axis in front."""
        if not self.shared:
            return "\n".join(_each(names, f"{self.family}split(x, chunk)"))
        plain = [n for n in names if n in ("q", "k")]
        headed = [n for n in names if n not in plain]
        split = f"{self.family}split(x, chunk"
        lines = _each(plain, f"{split})") + _each(headed, f"{split}, heads=1)")
        return "\n".join(lines)

    def _scores(self, later: Factor, earlier: Factor) -> tuple[str, str]:
        """Variable and einsum of all products of two factors inside a chunk."""
        a, b = self._chunk(later, "I"), self._chunk(earlier, "J")
        lead = "BhN" if "h" in a else "BN"
        x, y = VARIABLE[later], VARIABLE[earlier]
        return f"{x}_{y}", f'torch.einsum("{a},{b}->{lead}IJ", {x}, {y})'

    def _masked(self, later: Factor, earlier: Factor) -> str:
        text = self._scores(later, earlier)[1]
        if not self.decay:
            return f"{text}.tril_()"
        headed = "h" in self._chunk(later, "I")
        return f"{text} * pair" if headed else f"{text}.unsqueeze(1) * pair"

    def _scores_of(self, earlier_or_later: str) -> str:
        headed = self.decay or not (self.shared and earlier_or_later == "q_k")
        return "BhNIJ" if headed else "BNIJ"

    @property
    def forward_lines(self) -> list[str]:
        """The output from inside the chunk, then from before it."""
        name, _ = self._scores(Factor.READ, Factor.KEY)
        inside = f'torch.einsum("{self._scores_of(name)},BhNJp->BhNIp", {name}, v)'
        past = f'torch.einsum("{self._chunk(Factor.READ, "I")},BhNnp->BhNIp", q, past)'
        head = " * head" if self.decay else ""
        return [
            f"{name} = {self._masked(Factor.READ, Factor.KEY)}",
            f"rows = {inside}",
            f"rows += {past}{head}",
        ]

    def _needs(self, s: RoleScan) -> tuple[Factor, Factor, Factor]:
        """(later, earlier) factors of the products a role scan needs, and what it weighs."""
        other = s.key if s.contracted is Group.KEYS else s.value
        weighed = s.value if s.contracted is Group.KEYS else s.key
        pair = (s.read, other) if s.direction is ScanDirection.FORWARD else (other, s.read)
        return (*pair, weighed)

    @cached_property
    def scores(self) -> list[str]:
        """The products inside a chunk that the gradients need, each once.

        Those of read and key carry the decay already; the others get it once the decay's own
        gradient has been taken.
        """
        lines: dict[str, str] = {}
        for s in self.adjoint.scans:
            later, earlier, _ = self._needs(s)
            name, text = self._scores(later, earlier)
            decayed = self.decay and name != "q_k"
            lines.setdefault(name, f"{name} = {text if decayed else self._masked(later, earlier)}")
        return list(lines.values())

    @property
    def undecayed(self) -> list[str]:
        """Names of the products that the decay still has to be applied to."""
        names = dict.fromkeys(self._scores(*self._needs(s)[:2])[0] for s in self.adjoint.scans)
        return [n for n in names if n != "q_k"]

    @property
    def chunk_gradients(self) -> list[str]:
        """Each gradient: from inside the chunk, then from the states around it."""
        lines = []
        for s in self.adjoint.scans:
            later, earlier, weighed = self._needs(s)
            name, _ = self._scores(later, earlier)
            forward = s.direction is ScanDirection.FORWARD
            here, there = ("I", "J") if forward else ("J", "I")
            result = f"d{VARIABLE[s.result]}"
            shape = self._chunk(s.result, here)
            w = VARIABLE[weighed]
            subscripts = f"{self._scores_of(name)},{self._chunk(weighed, there)}->{shape}"
            lines.append(f'{result} = torch.einsum("{subscripts}", {name}, {w})')
            carry, scale = ("past", "head") if forward else ("future", "tail")
            read, after = VARIABLE[s.read], ""
            if self.decay and s.contracted is Group.CHANNELS:
                read = f"{read} * {scale}"
            elif self.decay:
                after = f" * {scale}"
            subscripts = f"{self._chunk(s.read, here)},BhNnp->{shape}"
            lines.append(f'{result} += torch.einsum("{subscripts}", {read}, {carry}){after}')
        return lines

    # --- the pairing of both directions' states ---------------------------------------------------
    # A state of the chunk is what entered it plus Σ key ⊗ value, in either direction: the pairing
    # has four parts, and each sum over n and p is one over the factors.

    @property
    def _kept(self) -> str:
        """Letters of the state's axes that the decay has; a group without axes has size 1."""
        assert self.adjoint.pairing is not None
        summed = set(self.adjoint.pairing.summed)
        groups = {"n": self.scan.keys, "p": self.scan.channels}
        return "h" + "".join(c for c, axes in groups.items() if not summed.issuperset(axes))

    @property
    def pair_states(self) -> str:
        """Subscripts of the pairing at one token."""
        return f"Bhnp,Bhnp->B{self._kept}"

    @property
    def pair_chunks(self) -> str:
        """The same of what enters each chunk from either side."""
        return f"BhNnp,BhNnp->{self._kept.replace('h', 'BhN')}"

    @property
    def pairs(self) -> str:
        """Key with key and value with value of both directions, inside a chunk."""
        keys, _ = self._scores(self.back.key, Factor.KEY)
        values, _ = self._scores(self.back.value, Factor.VALUE)
        return f"{keys} * {values}"

    @property
    def read_past(self) -> str:
        """Subscripts of the state from before the chunk, met by the other direction's key."""
        return f"{self._chunk(self.back.key, 'I')},BhNnp->BhNIp"

    @property
    def key_future(self) -> str:
        """Subscripts of the other direction's state from after the chunk, met by the key."""
        return f"{self._chunk(Factor.KEY, 'J')},BhNnp->BhNJp"

    @property
    def carry(self) -> str:
        """Einsum of key and value to the drive of each chunk."""
        return f"{self._chunk(Factor.KEY, 'I')},BhNIp->BhNnp"

    @property
    def carry_back(self) -> str:
        """The same of the reversed recurrence."""
        return f"{self._chunk(self.back.key, 'I')},{self._chunk(self.back.value, 'I')}->BhNnp"

    def returned(self) -> str:
        """Statements that give the gradients back in the shape of the arguments."""
        if not self.shared:
            rows = ", ".join(self.grads)
            return f"    return *map({self.family}join, ({rows}), like), dS"
        out = []
        for k, x in enumerate(self.inputs):
            headed = x not in ("q", "k")
            heads = ", heads=1" if headed else ""
            out.append(f"    d{x} = {self.family}join(d{x}, like[{k}]{heads})")
        return "\n".join([*out, f"    return {', '.join(self.grads)}, dS"])


def _each(names: list[str], value: str) -> list[str]:
    """Statements `a, b = (f(x) for x in (a, b))`, one name without the generator."""
    if not names:
        return []
    if len(names) == 1:
        return [f"    {names[0]} = {value.replace('(x', f'({names[0]}')}"]
    joined = ", ".join(names)
    return [f"    {joined} = ({value} for x in ({joined}))"]
