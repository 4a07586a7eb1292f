"""The published ace-framework as a program for `curator=peer`: it reads a job from each line, writes operations.

It runs in an environment of its own (`make peers-ace`), without this project. Both roles are the package's, unchanged.
Tools run one after the other: else the order of operations would differ from run to run. Ids of added skills are
dropped, as the run numbers them. Sections of other skills are dropped, as the package has two and books have more.
"""

import json
import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ace import Reflector, Skillbook, SkillManager
from ace.core.outputs import AgentOutput
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tool_manager import ToolManager

_MODEL = "openai-chat:skg-bench"
_FIELDS = ("type", "section", "skill_id", "issue", "keywords", "insight", "metadata", "reason")


class PublishedRoles:
    """The package's reflector and skill manager. Each job names the server for both in the environment."""

    def __init__(self) -> None:
        self._reflector = Reflector(_MODEL)
        self._manager = SkillManager(_MODEL, model_settings=ModelSettings())

    def learned(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """Operations for a job, and the reasoning of both roles."""
        os.environ.update(OPENAI_BASE_URL=job["address"], OPENAI_API_KEY=job["key"])
        book, used = Skillbook.from_dict(job["skillbook"]), tuple(job["skills_used"])
        reflection = self._reflector.reflect(
            question=job["question"],
            agent_output=AgentOutput(reasoning="", final_answer=job["answer"]),
            skillbook=book,
            feedback="\n".join(f"{name}: {words}" for name, words in job["feedback"].items()),
            injected_skill_ids=used,
        )
        with ToolManager.parallel_execution_mode("sequential"):
            output = self._manager.update_skills(
                reflections=(reflection,),
                skillbook=book,
                question_context=job["question"],
                progress="",
                injected_skill_ids=used,
            )
        if "error" in output.raw:
            raise RuntimeError(output.raw["error"])
        reasoning = {"reflection": reflection.model_dump(exclude={"raw"}), "update": output.update.reasoning}
        return {"operations": [_operation(each.to_json()) for each in output.update.operations], "reasoning": reasoning}


def _operation(fields: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: fields[name] for name in _FIELDS if fields.get(name) not in (None, {}, [])}
    dropped = "skill_id" if kept["type"] == "ADD" else "section"
    return {name: value for name, value in kept.items() if name != dropped}


def main() -> None:
    """Answers jobs until there are no more."""
    out, sys.stdout = sys.stdout, sys.stderr  # some of the package's modules print

    def write(value: Mapping[str, Any]) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    write({"peer": f"ace-framework {version('ace-framework')}"})
    roles = PublishedRoles()
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = roles.learned(job)
        except Exception as error:  # noqa: BLE001  whatever the package raises ends this job alone
            answer = {"error": f"{type(error).__name__}: {error}"}
        write({"job": job["job"], **answer})


if __name__ == "__main__":
    main()
