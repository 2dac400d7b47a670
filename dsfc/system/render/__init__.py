"""Renderings of a system: index form, Kronecker form, convolution kernel, LaTeX, JSON."""
