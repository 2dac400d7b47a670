"""From a plan to the text of a module, by a backend that is loaded by name."""
