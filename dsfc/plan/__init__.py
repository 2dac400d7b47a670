"""The plan: a kernel graph for the forward system and its adjoint."""
