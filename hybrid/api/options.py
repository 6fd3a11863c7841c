"""Keyword arguments of the Python interface as a configuration, checked by the same schema as a job's."""

from __future__ import annotations

from typing import Any

from hybrid.config.schema import Config
from hybrid.errors import ConfigError


def configured(algorithm: str, options: dict[str, Any] | None = None) -> Config:
    """The defaults with these keys set; ConfigError names the key and the fix."""
    if not options:
        return Config()  # without loading YAML
    from hybrid.config import load_config

    try:
        return load_config(None, options={"algorithm": algorithm, **options})
    except ConfigError as error:  # it was not written on a command line
        raise ConfigError(error.reason, value=error.value, fix=error.fix) from None
