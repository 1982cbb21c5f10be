"""CEL that users write is evaluated in a process of its own, which may take too long, or die.

In come expressions and the values that they are about; out comes for each value whether all of them
are true of it, or that they take too long. Nothing else waits for them: not the event loop, and not
Python's interpreter, which the library holds while it works. Start reading at `processes`.
"""
