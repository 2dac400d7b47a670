"""stub"""

from dsfc.diagnostics.syntax_codes import *  # noqa
from dsfc.diagnostics.syntax_codes import Limit, SyntaxProblem, Character, Keyword
