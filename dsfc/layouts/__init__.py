"""Layout maps: how the weights of a published layer become those of an emitted module.

A map is a TOML file. Its rows move numbers; what a row does is an enumeration of operations, and
nothing in a map is executed. The maps that are shipped stand beside this file.
"""
