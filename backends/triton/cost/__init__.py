"""The cost of kernels for GPUs: counts of bytes, operations, exponentials, instructions, launches.

A scan that is computed by kernels of its own reads its inputs and writes its outputs, and nothing
in between goes through memory but what is counted here. Counts are per token and batch entry, over
all heads, of one pass:

    fused  one program carries the state of a tile of channels from the first token to the last
    split  time is cut into segments; what a segment makes of a state is computed first, then all
           segments run side by side: more bytes, and a chain of `segment` tokens instead of all

`redundant_reads` stands apart: bytes that programs side by side read at the same time, or that one
reads again a few tokens later, so that memory is asked once if a cache holds them for that long.
That is an assumption until it is measured; without it they are added to `bytes`.

Which of the two a scan takes, and in how many segments, is what `seconds` says of them on a
machine: emitted modules ask the same at every launch. Rates are those of
`devices.DEVICES`, of which each says where it is from.

| file             | what it holds                                       |
|------------------|-----------------------------------------------------|
| `counts.py`      | what is counted, and what all forms count with      |
| `matrix.py`      | counts of matrix scans                              |
| `phased.py`      | counts of complex matrix scans                      |
| `selective.py`   | counts of selective scans                           |
| `elementwise.py` | counts of scans without keys                        |
| `scans.py`       | the counts of a scan, and of all scans of a plan    |
| `devices.py`     | what GPUs do in a second; predicted time            |
| `render.py`      | counts as text                                      |
"""
