"""Evaluates CEL expressions of users in a child process, which may be too slow, or die.

Input: expressions and values. Output: for each value whether all expressions are true of it, or an
error that they take too long. The event loop does not wait for the evaluation, and neither does
Python's interpreter, which the CEL library locks while it works. Start reading at `processes`.
"""
