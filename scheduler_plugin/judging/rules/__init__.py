"""The rules of a verdict, each one object: when it refuses, what it says where it passes, remedies.

In comes a Case; out come sentences. `judge` asks for refusals alone; `kubectl moorage why` and the
dashboard ask for the rest, and `docs/reference/reasons.md` is generated from the rules' meanings.
Start reading at `table`, which holds them in order; a rule stands beside those that look at the
same objects.
"""
