"""Emitted modules against what people run today: time, memory and growth with length on a CPU."""
