"""The service's log: one line per event, ``key=value``, readable by people and by machines; secrets are not in it."""

from __future__ import annotations

import json
import logging
import re
import sys
import time

from exchange.escape import printable_lines

_SECRET = re.compile(r"(?i)(bearer\s+|token[\"']?\s*[=:]\s*[\"']?)[^\s\"',&]+")


class Lines(logging.Formatter):
    """``time level logger event key=value ...``; what looks like a secret, and the token itself, is starred."""

    def __init__(self, token: str | None) -> None:
        super().__init__()
        self._token = token

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        facts = getattr(record, "facts", {})
        said = " ".join((record.getMessage(), *(f"{name}={_value(value)}" for name, value in facts.items())))
        text = f"{when}.{int(record.msecs):03d}Z {record.levelname:7} {record.name} {said}".rstrip()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return self.redact(printable_lines(text))

    def redact(self, text: str) -> str:
        if self._token:
            text = text.replace(self._token, "***")
        return _SECRET.sub(r"\1***", text)


def _value(value: object) -> str:
    text = str(value)
    return text if re.fullmatch(r"[\w./:+-]+", text) else json.dumps(text)


def set_up_logging(token: str | None, *, verbose: bool) -> None:
    """All loggers go to stderr, in lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(token))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("tandem.access").setLevel(logging.DEBUG if verbose else logging.INFO)
    for noisy in ("uvicorn", "uvicorn.error", "asyncio", "numba"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
