"""Discovery handlers in processes of their own, by Akri's contract, at both of its ends.

The driver's end: handlers register at `registration_socket`, `table` decides in which state each
is, `limits` what is taken of their answers, `external_handlers` keeps talking to them.
`handler_sources` are all that answer for a Configuration, room `properties` what they are given.
The handler's end: `sdk`. Start reading at `table`, or at `sdk` to write one.
"""
