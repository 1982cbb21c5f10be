"""What the process that evaluates is asked, and answers.

stdin:  length ─ marshal of (is first, expressions, values)     what our own process writes
stdout: READY once, then a byte for each value                  what may have been taken over
"""

from __future__ import annotations

READY = b"."

TRUE, FALSE, NEITHER = b"tf?"
"""`NEITHER`: what cannot be evaluated, or is no truth value."""

SIZE_BYTES = 4
"""Of the length of a question."""
