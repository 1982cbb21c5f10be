"""Checks an installation of Moorage, and says what is wrong and how to repair it.

The input is one frozen `Setup`: what could be read, and why the rest could not. The output is
findings, each with a sentence and, if something is wrong, what to do. `apiserver_setup` reads; the
other modules judge. Start reading at `findings`.
"""
