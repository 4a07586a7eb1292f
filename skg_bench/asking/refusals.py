"""Refusals of a server that no retry can mend, and what to do about each. No message holds the key."""

import json
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from skg_bench.core.errors import UsageError

if TYPE_CHECKING:
    import httpx

PATH = "/chat/completions"
_SHOWN = 200  # characters of what a server says


def check_response(response: "httpx.Response", address: str, model: str, key: str | None) -> None:
    """Does the server take requests like this one at all?

    Raises UsageError for a redirect, a refused key, an account without credit and an unknown path or model.
    """
    status = response.status_code
    if response.is_redirect:
        target = urlsplit(urljoin(address + PATH, response.headers["Location"]))
        place = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}".removesuffix(PATH)
        raise UsageError(
            f"curator.llm.address={address} redirects to {place}, which is not followed: nothing was sent there. If "
            f"you trust that server, set curator.llm.address={place}"
        )
    if status in (401, 403):
        raise UsageError(
            f"{address} refuses the key (HTTP {status}); check the environment variable that curator.llm.key_from "
            f"names, and whether its key may use curator.llm.model={model}"
        )
    if status in (402, 429):
        raise UsageError(f"{address} refuses for want of payment (HTTP {status}): {server_reason(response, key)}")
    if status == 404 or (status == 400 and "model_not_found" in response.text):
        raise UsageError(
            f"{address} has no model curator.llm.model={model} or no path {PATH} (HTTP {status}): "
            f"{server_reason(response, key)}. curator.llm.address is what stands before that path; it often ends in /v1"
        )


def payable(response: "httpx.Response") -> bool:
    """Would another try be refused as well, because the account is empty?"""
    return response.status_code == 402 or (response.status_code == 429 and "insufficient_quota" in response.text)


def server_reason(response: "httpx.Response", key: str | None) -> str:
    """Reason that a server gives, in one line."""
    text = response.text
    try:
        error = json.loads(text)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    if key is not None:  # some servers repeat it
        text = text.replace(key, "***")
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * _SHOWN]).split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


def no_tls(address: str, error: ssl.SSLError) -> UsageError:
    """Error of a connection that cannot be made safe."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return UsageError(
            f"the certificate of {address} does not fit: {error.verify_message}. Check curator.llm.address; for a "
            "server with a certificate of your own, name its file in the environment variable SSL_CERT_FILE"
        )
    return UsageError(
        f"{address} makes no TLS connection ({error.reason}); check curator.llm.address: does it begin with http://?"
    )
