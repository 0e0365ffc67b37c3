"""What a command may see of the environment: what programs need to be found and to work, and no keys or tokens."""

from __future__ import annotations

import os
from collections.abc import Mapping

_ALLOWED = frozenset(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP "
    "VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT PYTHONPATH PYTHONHASHSEED PYTHONUTF8 "
    "GOPATH GOROOT GOCACHE GOMODCACHE GOFLAGS CARGO_HOME RUSTUP_HOME CARGO_TARGET_DIR JAVA_HOME GRADLE_USER_HOME "
    "M2_HOME NODE_PATH NVM_DIR NVM_BIN PNPM_HOME DENO_DIR BUN_INSTALL GEM_HOME GEM_PATH RBENV_ROOT "
    "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR "
    "CC CXX CFLAGS CXXFLAGS LDFLAGS PKG_CONFIG_PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH "
    "SSL_CERT_FILE SSL_CERT_DIR".split()
)

_FIXED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",  # fail, do not ask
    "PYTHONUNBUFFERED": "1",  # so that a command that is cut off has shown how far it came
}


def scrubbed(environment: Mapping[str, str] | None = None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of ``environment`` (that of this process) that are allowed by name, those that keep a command from
    asking and from painting, and ``extra``, which is the caller's own choice."""
    source = os.environ if environment is None else environment
    kept = {name: value for name, value in source.items() if name in _ALLOWED or name.startswith("LC_")}
    return {**kept, **_FIXED, **(extra or {})}
