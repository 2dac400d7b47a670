"""Optional rules of proof: each shows one kind of claim, and the kernel does not rest on them.

A rule is a function of a claim and of the data of its proof, which raises `Rejected` where the data
do not show the claim. Without a rule fewer certificates are accepted, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dsfc.trusted.claim import (
    Assumed,
    Claim,
    Conditional,
    ConstantSequence,
    MarkovParameters,
    SeparatingSequences,
    TwoWays,
)
from dsfc.trusted.rules.assumed import check_assumed
from dsfc.trusted.rules.conditional import check_conditional
from dsfc.trusted.rules.constant_sequence import check_constant_sequence
from dsfc.trusted.rules.markov import check_markov
from dsfc.trusted.rules.test_sequences import check_sequences
from dsfc.trusted.rules.two_ways import check_two_ways
from dsfc.trusted.witness import Gap

Rule = Callable[[Claim, Any], Gap | None]
"""A check of the proof of a claim; it raises `Rejected` where the proof does not show the claim.

It returns the two values that a point of difference shows.
"""

RULES: Mapping[type, Rule] = {
    Assumed: check_assumed,
    Conditional: check_conditional,
    ConstantSequence: check_constant_sequence,
    MarkovParameters: check_markov,
    SeparatingSequences: check_sequences,
    TwoWays: check_two_ways,
}
"""The type of a proof → the rule that checks it."""
