"""Writes to waiting pods: gates are removed, and conditions and Events say why pods wait.

Input: changes of the world, and the pods that Filter or Bind refused. The scheduler plugin's
`GateKeeper` decides which pods are admitted. `apiserver_gates` works in terms of the Lease
(`apiserver_gate_terms`). In each term gates are removed (`apiserver_gate_removals`), conditions
written (`apiserver_conditions`) and Events recorded (`apiserver_gate_events`).
`apiserver_gate_writes` has each write. Start reading at `apiserver_gates`.
"""
