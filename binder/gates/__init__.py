"""What is written on pods that wait: gates are removed, and conditions say why they wait.

In come changes of the world and what kube-scheduler was refused; the scheduler plugin's GateKeeper
decides who may go. `apiserver_gates` works in terms (`apiserver_gate_terms`), in each of which pods
are let go (`apiserver_gate_removals`) and others told (`apiserver_conditions`,
`apiserver_gate_events`). Each write is in `apiserver_gate_writes`. Start reading at
`apiserver_gates`.
"""
