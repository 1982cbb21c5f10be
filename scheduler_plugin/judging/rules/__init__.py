"""The rules of a verdict. Each is an object with refusals, a sentence if it allows, and remedies.

Input is a Case; output is sentences. `judge` uses refusals only; `kubectl moorage why` and the
dashboard use the rest, and `docs/reference/reasons.md` is generated from the rules' meanings.
Modules group the rules by the objects that they are about. Start reading at `table`, which has the
rules in their order.
"""
