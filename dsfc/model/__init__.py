"""Whole models around emitted layers, as folders that the library transformers loads."""
