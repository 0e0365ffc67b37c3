"""The version of this library, as it is installed. The one place where it is written is ``pyproject.toml``."""

from __future__ import annotations

from importlib import metadata


def installed_version() -> str | None:
    """The version; None for a checkout that is not installed."""
    try:
        return metadata.version("streamparse-toolcalls")
    except metadata.PackageNotFoundError:
        return None
