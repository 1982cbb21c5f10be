"""The rules of admission: one module for each kind of object.

Input: a review and the `rule_context`, which are the stored objects of the cluster. Output:
findings, or edits of a new pod (`mutations`). Rules are pure: `apiserver` looks up the objects that
a rule needs before. Start reading at `pods`.
"""
