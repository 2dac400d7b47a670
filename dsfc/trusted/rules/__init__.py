"""Optional rules of proof: each shows one kind of claim, and the kernel does not rest on them.

A rule is a function of a claim and of the data of its proof, which raises `Rejected` where the data
do not show the claim. Without a rule fewer certificates are accepted, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dsfc.trusted.claim import Claim, Conditional, ConstantWord, MarkovParameters, Words
from dsfc.trusted.rules.conditional import check_conditional
from dsfc.trusted.rules.constant_word import check_constant_word
from dsfc.trusted.rules.markov import check_markov
from dsfc.trusted.rules.words import check_words

Rule = Callable[[Claim, Any], None]
"""What checks the proof of a claim; raises `Rejected` where the proof does not show it."""

RULES: Mapping[type, Rule] = {
    Conditional: check_conditional,
    ConstantWord: check_constant_word,
    MarkovParameters: check_markov,
    Words: check_words,
}
"""The type of a proof → the rule that checks it."""
