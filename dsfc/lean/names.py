"""Identifiers of Lean for generators and entries of states, at tokens.

A generator is a *base*, which says what it is at a token, at a *place*: so many tokens before the
token that is spoken of, or a token by number. A base is a sequence of Lean, or a constant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dsfc.trusted.generator_names import STATE, lags, shifted
from dsfc.trusted.polynomial import IMAGINARY

UNIT = "I"
"""The imaginary unit: no other identifier is one capital letter I."""

_TAKEN = ("row_", "step_", "is_", "kept_", "start_", "equal_", "y_A_", "y_B_", "argument_", "I_")
"""What names of hypotheses, of theorems and of values begin with."""

_PLAIN = re.compile(r"(~?)([A-Za-z_]\w*)\[([\d,]*)\]")


@dataclass(frozen=True, slots=True)
class Variable:
    """What a variable of a lemma is.

    Attributes:
        base: the identifier of a sequence or a constant.
        back: how many tokens before the token spoken of; None for a constant, or with `token`.
        token: the number of a token, else None.
    """

    base: str
    back: int | None = None
    token: int | None = None

    @property
    def identifier(self) -> str:
        """The variable's own name."""
        if self.token is not None:
            return f"{self.base}_at_{self.token}"
        return self.base if not self.back else f"{self.base}_back_{self.back}"


@dataclass(slots=True)
class Names:
    """All identifiers of one file.

    Attributes:
        bases: identifier → the name that certificates have for it, at its own token.
        constants: identifiers of what is the same at all tokens.
        variables: identifier of a variable → what it is.
    """

    bases: dict[str, str] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    variables: dict[str, Variable] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def generator(self, name: str, token: int | None, by: int = 0) -> str:
        """Returns the identifier of a generator.

        Args:
            name: as in certificates.
            token: of which of the first tokens it is spoken; None for any later one.
            by: how many tokens earlier it is meant.
        """
        if name == IMAGINARY:
            return self._kept(Variable(UNIT))
        read = lags(frozenset({name}))
        if not read:
            base = self._base(name)
            self.constants.add(base)
            return self._kept(Variable(base))
        least = min(read)
        base, back = self._base(shifted(name, -least)), least + by
        if token is None:
            return self._kept(Variable(base, back=back))
        return self._kept(Variable(base, token=token - back))

    def state(self, name: str, token: int | None, back: int) -> str:
        """Returns the identifier of an entry of a state after a token, or before it."""
        base = self._base(name)
        if token is None:
            return self._kept(Variable(base, back=back))
        return self._kept(Variable(base, token=token - back))

    def value(self, base: str, token: int | None) -> str:
        """Returns the identifier of an output, or of an argument of a function, at a token."""
        self._known.setdefault(base, base)
        self.bases.setdefault(base, "")
        if token is None:
            return self._kept(Variable(base, back=0))
        return self._kept(Variable(base, token=token))

    def _kept(self, variable: Variable) -> str:
        if variable.base == UNIT:
            self.constants.add(UNIT)
            self.bases.setdefault(UNIT, "the imaginary unit")
        self.variables[variable.identifier] = variable
        return variable.identifier

    def _base(self, name: str) -> str:
        if name not in self._known:
            wanted = _spelled(name)
            if wanted.startswith(_TAKEN) or any(w in wanted for w in ("_at_", "_back_", "_ne")):
                wanted = ""
            if not wanted or wanted in self.bases:
                wanted = f"f{len(self.bases) + 1}"
            self._known[name] = wanted
            self.bases[wanted] = name
        return self._known[name]


def _spelled(name: str) -> str:
    """An identifier that is like the name of an entry; "" where it is a function."""
    bare = name.replace(STATE, "").replace("A.", "A_").replace("B.", "B_").replace("@0", "")
    plain = _PLAIN.fullmatch(bare.replace(".", "_").replace(":", "_"))
    if plain is None:
        return ""
    parts = [plain[2], *filter(None, plain[3].split(",")), *(["conj"] if plain[1] else [])]
    return "_".join(("x", *parts) if parts[0][0] == "_" or len(parts) == 1 else parts)
