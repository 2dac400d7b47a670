"""What cannot be lifted: an exception inside, a diagnostic at the user's line outside."""

from __future__ import annotations

from dsfc.lift.ir import Where


class CannotLift(Exception):
    """A part of a module is none that a spec can say.

    Attributes:
        problem: what it is, naming the operation.
        where: the user's line; filled in by whoever knows it.
        hint: what to write instead.
    """

    def __init__(self, problem: str, where: Where | None = None, hint: str | None = None) -> None:
        """Keeps the problem."""
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.hint = hint
