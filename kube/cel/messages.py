"""Messages between the parent and the child that evaluates CEL.

stdin:  length ─ marshal of (is first, expressions, values)     from the parent, trusted
stdout: READY once, then a byte for each value                  from the child, not trusted
"""

from __future__ import annotations

READY = b"."

TRUE, FALSE, NEITHER = b"tf?"
"""`NEITHER`: the expression cannot be evaluated, or its result is not a boolean."""

SIZE_BYTES = 4
"""Size of the length field of a request."""
