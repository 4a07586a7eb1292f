"""A system that speaks OpenAI's chat API as an assistant: a gateway with a cache, an agent with a memory.

Each message is posted to the system, and the model that the system asks is the run's, behind the gateway of
`asking/gateway.py`. So what came back is known by its reference, and the system's own vectors are the run's.
"""

from skg_bench.assistant.endpoint.black_box import BlackBox
from skg_bench.assistant.endpoint.lease import BoxSettings, Lease

__all__ = ["BlackBox", "BoxSettings", "Lease"]
