"""Who may ask: the token, the name under which the service was called, the page that a browser asks from; headers.

One ASGI layer around everything. Invariant: a request that is refused here has reached no route; the token is compared
in constant time and is never logged.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
import time
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from hybrid.config.schema import ServiceConfig
from hybrid.errors import ConfigError, EnvironmentProblem
from hybrid.service.http.problems import MEDIA_TYPE, Problem
from hybrid.service.metrics import Metrics

_log = logging.getLogger("tandem.access")

OPEN = ("/healthz", "/readyz", "/", "/docs", "/favicon.ico")  # say nothing about data
UPLOAD = "/v1/graphs/upload"
MOST_JSON_BYTES = 1 << 20
TRUSTED = "tandem.trusted"  # in the scope: the client may see everything
STRANGER = "tandem.stranger"  # in the scope: called if that is not so
JSON_ROUTES = ("/v1/graphs", "/v1/jobs")
_SHORTEST_TOKEN = 16
_ONCE = (b"host", b"origin", b"authorization", b"content-type", b"sec-fetch-site", b"sec-fetch-dest")
_SAFE = ("GET", "HEAD", "OPTIONS")
# What any page may send without a preflight.
_FROM_ANY_PAGE = (b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data")
_HOST = re.compile(rb"(\[[0-9a-fA-F:.]{2,45}\]|[0-9a-zA-Z._-]{1,253})(:[0-9]{1,5})?")
HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
     b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]  # fmt: skip


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(settings: ServiceConfig) -> str | None:
    """The configured token; ConfigError where one is needed and there is none, or it is too short."""
    token = settings.token
    if settings.token_file is not None:
        try:
            lines = Path(settings.token_file).expanduser().read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise EnvironmentProblem(
                f"the token cannot be read: {error.strerror}", path=settings.token_file, fix="check service.token_file"
            ) from error
        token = lines[0].strip() if lines else ""
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise ConfigError(
            f"service.token: shorter than {_SHORTEST_TOKEN} characters",
            fix="make one with `python -c 'import secrets; print(secrets.token_urlsafe(32))'`",
        )
    if token is None and not is_loopback(settings.host) and not settings.open_to_network:
        raise ConfigError(
            "service.host: beyond loopback everybody could ask",
            value=settings.host,
            fix="set service.token_file, or service.open_to_network: true if that is meant",
        )
    return token


class Gate:
    """See the module; an ASGI application around another."""

    def __init__(self, inner: Any, settings: ServiceConfig, token: str | None, metrics: Metrics) -> None:
        self._inner, self._settings, self._metrics = inner, settings, metrics
        self._token = None if token is None else token.encode()
        self._own_names_only = is_loopback(settings.host) and token is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        began, status = time.perf_counter(), 500
        headers = dict(scope["headers"])
        scope[TRUSTED] = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                extra = [(name, value) for name, value in HEADERS if name not in present]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        try:
            self._require(scope, headers)
            most = self._settings.max_upload_bytes if scope["path"] == UPLOAD else MOST_JSON_BYTES
            await self._inner(scope, _limited(receive, most, headers), send_with_headers)
        except Problem as problem:
            await answer_with(problem)(scope, receive, send_with_headers)
        finally:
            spent = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count_request(scope["method"], route, status, spent)
            if _log.isEnabledFor(logging.DEBUG) or (status >= 400 and scope["path"] != "/readyz"):
                facts = {name: scope[name] for name in ("method", "path")}
                facts |= {"status": status, "ms": round(spent * 1e3, 2)}
                _log.log(logging.INFO if status < 500 else logging.WARNING, "request", extra={"facts": facts})

    def _require(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        path = scope["path"]
        public = path in OPEN or path.startswith("/page/")
        names = [name for name, _ in scope["headers"]]
        for name in _ONCE:
            if names.count(name) > 1:
                raise Problem(400, f"the header {name.decode()} is there twice", "send it once")
        host = _host_name(headers, scope["http_version"])
        if self._own_names_only and not is_loopback(host):
            raise Problem(403, "called by a foreign name", "use http://127.0.0.1 or http://localhost, or set a token")
        _require_own_page(scope["method"], headers, public)
        scope[TRUSTED] = self._token is None or self._knows_token(headers)
        if not scope[TRUSTED] and STRANGER in scope:
            scope[STRANGER]()
        if not scope[TRUSTED] and not public:
            raise Problem(401, "the token is missing or wrong", "send `Authorization: Bearer TOKEN`")
        _require_content(scope["method"], path, headers)

    def _knows_token(self, headers: dict[bytes, bytes]) -> bool:
        assert self._token is not None
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def _limited(receive: Receive, most: int, headers: dict[bytes, bytes]) -> Receive:
    """A body that may not be longer than allowed; Problem at once if it is said to be."""
    too_large = Problem(413, f"the body is larger than {most} bytes", "send less, or use a data root")
    announced, seen = headers.get(b"content-length", b"0"), 0
    if announced.isdigit() and int(announced) > most:
        raise too_large

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise too_large
        return message

    return receive_limited


def _host_name(headers: dict[bytes, bytes], version: str) -> str:
    """The name by which the service was called, without its port; Problem 400 if it is no name."""
    if b"host" not in headers and version == "1.0":
        return "localhost"
    match = _HOST.fullmatch(headers.get(b"host", b""))
    if match is None:
        raise Problem(400, "the header Host is no name or address", "send `Host: NAME` or `Host: NAME:PORT`")
    return match[1].decode().lower().strip("[]")


def _require_own_page(method: str, headers: dict[bytes, bytes], public: bool) -> None:
    """Problem 403 if a browser says that another site's page asks.

    Browsers send Sec-Fetch-Site, which no page can set; older ones only Origin, with whatever is not a plain GET.
    """
    site = headers.get(b"sec-fetch-site")
    if site is None:
        origin = headers.get(b"origin")
        own = [scheme + headers.get(b"host", b"").lower() for scheme in (b"http://", b"https://")]
        foreign = origin is not None and origin.lower() not in own and method not in _SAFE
    else:
        opened = method in _SAFE and headers.get(b"sec-fetch-dest") == b"document"  # a link that a user followed
        foreign = site not in (b"none", b"same-origin") and not (opened or (public and method in _SAFE))
    if foreign:
        raise Problem(403, "another site's page asked", "use this service's own page")


def _require_content(method: str, path: str, headers: dict[bytes, bytes]) -> None:
    """Problem 415 for what a page of another site could send without being asked for leave."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if method == "POST" and path in JSON_ROUTES and kind != b"application/json":
        raise Problem(415, "the body is not said to be JSON", "send `Content-Type: application/json`")
    browser = b"origin" in headers or b"sec-fetch-site" in headers
    if method == "POST" and path == UPLOAD and browser and kind in _FROM_ANY_PAGE:
        raise Problem(415, "an upload from a page has a type of its own", "send application/octet-stream")


def answer_with(problem: Problem) -> JSONResponse:
    return JSONResponse(problem.document(), problem.status, problem.headers(), MEDIA_TYPE)
