"""A peer that asks as much as it can: so many requests of 12 kB in each job, so many under way at once."""

import asyncio
import json
import sys
from itertools import count
from typing import Any

from skg_bench.asking.http_client import LocalClient

_KILOBYTES = 12  # of a request of the published package's skill manager


async def ask_all(job: Any, requests: int, at_once: int) -> int:
    """How many of the requests were answered."""
    client, numbers, answered = LocalClient(job["address"]), count(), 0
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {job['key']}"}

    async def ask() -> None:
        nonlocal answered
        while (number := next(numbers)) < requests:
            message = {"role": "user", "content": f"Request {number}. " + "Some words. " * (1000 * _KILOBYTES // 12)}
            body = json.dumps({"model": "any", "messages": [message], "tools": []}).encode()
            answer = await client.request("POST", "/chat/completions", body, headers)
            answered += answer.status == 200

    await asyncio.gather(*(ask() for _ in range(at_once)))
    client.close()
    return answered


def main() -> None:
    """Answers each job with how many requests were answered."""
    requests, at_once = map(int, sys.argv[1:])
    print(json.dumps({"peer": "asks"}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        answered = asyncio.run(ask_all(job, requests, at_once))
        print(json.dumps({"job": job["job"], "operations": [], "reasoning": answered}), flush=True)


if __name__ == "__main__":
    main()
