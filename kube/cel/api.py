"""The door into kube/cel: what other components may use of it."""

from kube.cel.processes import CelProcess, NotEvaluatedError, TooSlowError, digest_of
