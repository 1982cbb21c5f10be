"""Brokers: Pods or Jobs for each Instance, and Services for them, as Akri's controller makes them.

    Configuration ──workloads──► what it wants ─┐
    Instances ──────────────────────────────────┼─ plans ──► writes ──► Pods, Jobs, Services, claims
    Pods, Jobs, Services ───────────────────────┘    └─────► the condition `BrokersReady`

A broker Pod runs on each node that sees the device, at most as many as it has slots; a Job runs
once for each device. On DRA each of their pods has a claim of its device, from a template of the
Instance. Start reading at `plans`.

Source: `controller/src/util/instance_action.rs` and `shared/src/k8s` of Akri.
"""
