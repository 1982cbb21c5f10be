"""Whether what runs in a cluster is a whole Moorage, and if not, what is wrong and what mends it.

In flows one frozen `Setup`: what could be read, and of the rest why not. Out flow findings, each
with a sentence and, unless all is well, what to do. `apiserver_setup` reads; the others judge.
Start reading at `findings`.
"""
