"""Charts as SVG text, for pages and notebooks; they know nothing of mixers."""
