"""Claims held against the derived system: proved, refuted by an executed point, or undecided."""
