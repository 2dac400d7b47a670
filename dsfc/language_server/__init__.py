"""A language server for specs: what an editor shows of a text while it is written.

Every answer is a function of a `Document`, an immutable value made once per change: `hover`,
`complete`, `definitions`, `rename`, `fixes`, `formatted`. A change parses the text once and types
the mixers that it touched; nothing is derived then. `server.serve` says it all in the protocol and
is the only module that knows pygls.
"""
