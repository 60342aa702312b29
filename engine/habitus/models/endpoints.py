"""Addresses that models are reached at: connections, slots and waits, shared by all models there.

    endpoint = endpoint_for(opening, base_url, key, concurrency)
    answer = await endpoint.post(body, seconds=60)

``post`` makes one try and never raises for what a network does: an :class:`Answer` has a status,
or a fault where there was none. The key lives in the connection's headers only and is shown by
nothing here. The transport is aiohttp: the openai client costs eight times its CPU time and
reaches 1.8 times the ideal wall time with 256 requests in flight (``bench/clients.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from habitus import __version__
from habitus.errors import ModelError
from habitus.models.clock import Clock, SystemClock
from habitus.models.entry import Opening
from habitus.models.keys import Secret
from habitus.models.scheduling import Gate

if TYPE_CHECKING:
    import aiohttp

MAX_BODY = 16 * 2**20
_KEEP_ALIVE = 60.0
_CONNECT_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from one try.

    ``fault`` says why there is no whole answer ("timeout", "connection", "answer too large") and
    is empty when there is one; headers are looked up in any case.
    """

    status: int = 0
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""


class Endpoint:
    """One base URL with one key."""

    def __init__(
        self, base_url: str, key: str | None, concurrency: int, clock: Clock | None = None
    ) -> None:
        self.base_url = base_url
        self.clock = clock or SystemClock()
        self.gate = Gate(concurrency, self.clock)
        self._key = key
        self._secret = Secret(key)
        self._address = f"{base_url}/chat/completions"
        self._users = 0
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"

    def join(self, concurrency: int) -> None:
        """One more model uses the endpoint; the most generous concurrency holds for all."""
        self._users += 1
        self.gate.raise_maximum(concurrency)

    async def leave(self) -> None:
        """One model less; the last one closes the connections."""
        self._users -= 1
        if self._users <= 0 and self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def hide(self, text: str) -> str:
        """A text of the server without the key, should it repeat it."""
        return self._secret.hidden_text(text)

    async def post(self, body: bytes, seconds: float) -> Answer:
        """Send one request; ``seconds`` bound connecting and reading."""
        return await self._try("POST", self._address, body, seconds)

    async def models(self, seconds: float) -> Answer:
        """Ask for the server's list of models, within some seconds."""
        return await self._try("GET", f"{self.base_url}/models", None, seconds)

    async def _try(self, method: str, address: str, body: bytes | None, seconds: float) -> Answer:
        import aiohttp  # noqa: PLC0415  (heavy, and most commands send nothing)

        session = self._session or self._open()
        limit = aiohttp.ClientTimeout(total=seconds, connect=min(seconds, _CONNECT_TIMEOUT))
        try:
            # A redirect is answered as an error: it could carry the key to another host.
            async with session.request(
                method, address, data=body, timeout=limit, allow_redirects=False
            ) as response:
                answer = await _read(response)
        except TimeoutError:
            return Answer(fault="timeout")
        except (aiohttp.ClientError, OSError):
            return Answer(fault="connection")
        # Before anything is read or cut: half a key in a cut text would not be found again.
        return replace(answer, body=self._secret.hidden(answer.body))

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp  # noqa: PLC0415

        headers = {"Content-Type": "application/json", "User-Agent": f"habitus/{__version__}"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        # A slot stands for a connection: the pool itself never makes a request wait.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=_proxy(self.base_url),
            read_bufsize=2**18,
        )
        return self._session


def endpoint_for(opening: Opening, base_url: str, key: str | None, concurrency: int) -> Endpoint:
    """The endpoint of an address and key among those a run shares; made when it is new."""
    known: dict[tuple[str, bytes], Endpoint] = opening.shared.setdefault("endpoints", {})
    which = (base_url, hashlib.blake2b((key or "").encode(), digest_size=16).digest())
    endpoint = known.get(which)
    if endpoint is None:
        endpoint = known[which] = Endpoint(base_url, key, concurrency, opening.clock)
    endpoint.join(concurrency)
    return endpoint


async def _read(response: aiohttp.ClientResponse) -> Answer:
    headers = response.headers
    length = response.content_length
    if length is not None and "content-encoding" not in headers:
        body = await response.read() if length <= MAX_BODY else None
    else:
        body = await _read_bounded(response)
    if body is None:
        return Answer(response.status, fault="answer too large")
    return Answer(response.status, body, headers)


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes | None:
    pieces = bytearray()
    async for piece in response.content.iter_any():
        pieces += piece
        if len(pieces) > MAX_BODY:
            response.close()
            return None
    return bytes(pieces)


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address, looked up once and not per call.

    Raises:
        ModelError: it is of a kind that cannot be used.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if proxy_bypass(host) or _is_this_machine(host):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy is None or proxy.startswith("http"):
        return proxy
    if "://" in proxy:
        raise ModelError(f"{parts.scheme}_proxy of the environment is no http proxy")
    return f"http://{proxy}"


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
