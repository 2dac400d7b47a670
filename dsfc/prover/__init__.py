"""Deciding whether two systems compute the same function: proved, refuted, or unknown and why."""
