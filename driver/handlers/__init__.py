"""External discovery handlers: both ends of Akri's contract.

The driver's end: handlers register at `registration_socket`. `registrations` defines the states of
a handler, `table` which handlers are registered. `limits` says which answers are accepted,
`external_handlers` and `node_conversations` call the handlers. `handler_sources` defines what
answers for a Configuration; room `properties` resolves the properties that handlers get.
The handler's end: `sdk`. Start reading at `table`, or at `sdk` to write a handler.
"""
