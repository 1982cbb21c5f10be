"""Environment: the variables that devices and claims must not set in containers.

    name of a property, or of a variable of a DeviceConfig ──refusal──► reason | ""

A variable of a device overrides the variable of the same name in the pod's spec, and no admission
policy sees it. So names are denied that make a program load, trust, contact or use something else
than its image and its pod define. The names are from `unsecvars.h` of glibc (which the loader
removes for privileged programs), `initial_badenv_table` of sudo, the manuals of interpreters and of
TLS libraries, the variables of the kubelet for Services, and the variables that container runtimes
and libraries of accelerators read. Such a list is never complete: handlers must be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache

VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
"""Names that Kubernetes accepts in a container's `env`; others never reach a container."""

OWN = "MOORAGE_*"
"""Moorage's own variables."""

DENIED: Mapping[str, tuple[str, ...]] = {
    "they are Moorage's own": (OWN,),
    "they say what the loader and the C library load": (
        *("LD_*", "_RLD*", "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "GMON_OUT_PREFIX"),
        *("LOCPATH", "MALLOC_*", "NLSPATH", "PATH_LOCALE", "TZDIR"),
    ),
    "they say how names are resolved": (
        *("HES_DOMAIN", "HESIOD_CONFIG", "HOSTALIASES", "LOCALDOMAIN", "NIS_*"),
        *("RES_OPTIONS", "RESOLV_HOST_CONF"),
    ),
    "they say what shells run": (
        *("BASH_*", "BASHOPTS", "ENV", "FPATH", "GLOBIGNORE", "IFS", "NULLCMD", "PROMPT_COMMAND"),
        *("PS4", "READNULLCMD", "SHELLOPTS", "TERMCAP", "TERMINFO", "TERMINFO_DIRS", "TERMPATH"),
        *("TMPPREFIX", "ZDOTDIR"),
    ),
    "they say what interpreters and tools run": (
        *("BUNDLE_*", "CLASSPATH", "COMPlus_*", "CORECLR_*", "DOTNET_*", "ERL_*", "GEM_*"),
        *("GIT_*", "GODEBUG", "_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LUA_*"),
        *("NODE_OPTIONS", "NODE_PATH", "PERL*", "PHP_INI_SCAN_DIR", "PHPRC", "PYTHON*", "RUBY*"),
    ),
    "they say where programs and files are looked for": (
        *("CDPATH", "HOME", "PATH", "SHELL", "TMPDIR", "XDG_*"),
    ),
    "they say whom TLS trusts": (
        *("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"),
        *("KRB5_*", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "OPENSSL_*"),
        *("REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE", "SSLKEYLOGFILE"),
    ),
    "they say where the cluster's services are": (
        *("KUBECONFIG", "KUBERNETES_*", "*_SERVICE_HOST", "*_SERVICE_PORT", "*_SERVICE_PORT_*"),
    ),
    "they say which accelerators there are": (
        *("*_VISIBLE_CORES", "*_VISIBLE_DEVICES", "ASCEND_*", "CUDA_*", "GPU_DEVICE_ORDINAL"),
        *("HABANA_*", "HIP_*", "HSA_*", "NEURON_RT_*", "NVIDIA_*", "ONEAPI_DEVICE_SELECTOR"),
        *("ROCR_*", "SYCL_*", "TPU_*", "ZE_*"),
    ),
}
"""Denied names as shell patterns, by the reason."""

DENIED_IN_ANY_CASE: Mapping[str, tuple[str, ...]] = {
    "they say which proxy is asked": (
        *("ALL_PROXY", "FTP_PROXY", "GRPC_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_GRPC_PROXY"),
        *("NO_PROXY", "RSYNC_PROXY", "SOCKS_PROXY", "WS_PROXY", "WSS_PROXY"),
    ),
    "they say what interpreters and tools run": ("NPM_CONFIG_*",),
}
"""Denied names that programs read in upper and lower case."""

NETWORK_PREFIXES = ("ONVIF_", "OPCUA_")
"""Prefixes of the properties of Moorage's own network handlers."""


def built_in_refusal(name: str) -> str:
    """Why the built-in list denies a variable, as a clause; "" if it is allowed."""
    if not _any_of(_ALL).match(name) and not _any_of(_ALL_IN_ANY_CASE).match(name.upper()):
        return ""
    return _named(name, DENIED) or _named(name.upper(), DENIED_IN_ANY_CASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRules:
    """A node's settings of the environment.

    Attributes:
        denied: Patterns of names that are denied beside the built-in ones.
        allowed: Names that are allowed although they are denied.
        network_prefixes: Prefixes of the properties of unprivileged handlers that become variables.
    """

    denied: tuple[str, ...] = ()
    allowed: frozenset[str] = frozenset()
    network_prefixes: tuple[str, ...] = NETWORK_PREFIXES

    def refusal(self, name: str) -> str:
        """Why a property is denied as a variable; "" if it is allowed, or is no variable's name."""
        if name in self.allowed or not VARIABLE.fullmatch(name):
            return ""
        if self.denied and _any_of(self.denied).match(name):
            found = next(p for p in self.denied if fnmatchcase(name, p))
            return f"variables {found} are denied by --denied-environment"
        return built_in_refusal(name)

    def unprivileged_refusal(self, name: str) -> str:
        """The same for a property that an unprivileged handler reports."""
        if not name.startswith(self.network_prefixes) and VARIABLE.fullmatch(name):
            prefixes = ", ".join(self.network_prefixes)
            return f"its handler runs without privileges (--network-handler-prefixes: {prefixes})"
        return self.refusal(name)

    def passed(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """The properties that are not denied; the same object if none is."""
        if not any(map(self.refusal, properties)):
            return properties
        return {name: value for name, value in properties.items() if not self.refusal(name)}


BUILT_IN = EnvironmentRules()


def _named(name: str, denied: Mapping[str, tuple[str, ...]]) -> str:
    found = ((p, why) for why, patterns in denied.items() for p in patterns)
    return next(
        (f"variables {p} are denied: {why}" for p, why in found if fnmatchcase(name, p)), ""
    )


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all patterns: a fast check, since hardly any property is denied."""
    return re.compile("|".join(map(translate, patterns)))


def _all(denied: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    return tuple(pattern for patterns in denied.values() for pattern in patterns)


_ALL, _ALL_IN_ANY_CASE = _all(DENIED), _all(DENIED_IN_ANY_CASE)
