"""A peer of tests, of the standard library alone: asks the gateway once a job, or does what its first argument says."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any


def asked(job: Any, **more: Any) -> Any:
    """Message of the model, or the status of the refusal."""
    words = f"{job['question']} {json.dumps(job['feedback'])} used: {' '.join(job['skills_used'])}"
    content = {"model": "m", "messages": [{"role": "user", "content": words}], **more}
    headers = {"Authorization": f"Bearer {job['key']}", "Content-Type": "application/json"}
    address = f"{job['address']}/chat/completions"
    request = urllib.request.Request(address, json.dumps(content).encode(), headers)  # noqa: S310  of the gateway
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310
            return json.load(response)["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        return error.code


def operations(job: Any) -> Any:
    """A TAG for each used skill, and what the model said as an ADD."""
    message = asked(job)
    tags = [{"type": "TAG", "skill_id": label, "metadata": {"delta": 1}} for label in job["skills_used"]]
    if isinstance(message, int):
        return {"error": f"refused with {message} at {job['address']}"}
    text = message["content"]
    add = {"type": "ADD", "section": "context", "issue": text, "insight": text, "keywords": ["a"]}
    return {"operations": [*tags, add], "reasoning": "because"}


def act(mode: str, number: int, job: Any) -> Any:  # noqa: C901  a branch for each bad day
    """The answer of a job; some never come."""
    one = {"type": "ADD", "section": "context", "issue": "x", "insight": "x", "keywords": ["a"]}
    match mode:
        case "dies":
            asked(job)
            os._exit(3)
        case "hangs":
            asked(job)
            time.sleep(600)
        case "half":
            sys.stdout.write('{"job": "')
            sys.stdout.flush()
            os._exit(0)
        case "prints":
            print("Loading...", flush=True)  # noqa: T201  as a peer should not
            time.sleep(60)  # it is ended before: else it might ask, which is paid for
        case "nonsense":
            return {"operations": ["no operation", {"type": "EAT"}, 7]}
        case "another":
            return {"operations": [{"type": "REMOVE", "skill_id": "nobodys-00099"}]}
        case "many":
            return {"operations": [{**one, "issue": f"x{i}", "insight": f"x{i}"} for i in range(10_000)]}
        case "twice":
            return {"operations": [one, one]}
        case "surrogate":
            return {"operations": [], "reasoning": "\ud800"}
        case "insists":
            while True:
                asked(job)
        case "environment":
            seen = {**os.environ, "cwd": os.listdir()}  # noqa: PTH208
            return {"operations": [], "reasoning": seen}
        case "once":
            answer = operations(job)
            print(json.dumps({"job": job["job"], **answer}), flush=True)  # noqa: T201
            os._exit(0)
        case "gives_up" if number == 1:
            return {"error": f"cannot, says {job['key']}"}
        case "echoes":
            print(json.dumps({name: job[name] for name in ("key", "address")}), flush=True)  # noqa: T201
            time.sleep(600)
        case "another_job":
            return {"job": f"{number}th", "operations": []}
        case "floods":
            while True:
                print("x" * 1000, flush=True)  # noqa: T201
        case "nothing":
            return {"operations": []}
    return operations(job)


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else "asks"
    if mode == "silent":
        time.sleep(600)
    print(json.dumps({"peer": "another one" if mode == "named" else "stand-in"}), flush=True)  # noqa: T201
    for number, line in enumerate(sys.stdin, 1):
        job = json.loads(line)
        print(json.dumps({"job": job["job"], **act(mode, number, job)}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
