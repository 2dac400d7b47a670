"""A language server for specs: what an editor shows of a text while it is written.

Every answer is a function of a `Document`, an immutable value made once per change: `hover`,
`complete`, `definitions`, `references`, `rename`, `fixes`, `formatted`, `symbols`, `highlight`,
`signature`, `hints`. A change parses the text once and types the mixers that it touched; nothing is
derived then. What can be read of a text with mistakes is in its `pieces`. `server.serve` says it
all in the protocol and is the only module that knows pygls.
"""
