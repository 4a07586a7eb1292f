"""Rules by which the stand-in for a model solves tasks: only by an answer or a procedure that stands in its prompt.

It could work out each task of the kinds in PROCEDURES, and does so only where it is told how. So what differs between
arms is what their memories put into the prompt.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence

UNSOLVED = "I do not know."
REFLECT = "Write the procedure for this task: "
_TASK = re.compile(r"[^:\n]*\btask: (.+)", re.DOTALL)
_TOLD = re.compile(r"The answer is (.+) to the task: (.+)", re.DOTALL)
_PROCEDURE = re.compile(r'Procedure for tasks with the words "([^"]+)": ')
_NUMBER = re.compile(r"(?:(?<=\s)- |-)?\d+")

PROCEDURES: Mapping[str, Callable[[Sequence[int]], int]] = {
    "Greatest Common Divisor": lambda numbers: math.gcd(*numbers),
    "Least Common Multiple": lambda numbers: math.lcm(*numbers),
    "multiplication": lambda numbers: math.prod(numbers),
    "arithmetic problem": lambda numbers: sum(numbers),
    "binary representation": lambda numbers: numbers[-1].bit_count(),
    "prime numbers": lambda numbers: sum(map(_prime, range(numbers[0], numbers[-1] + 1))),
}
"""Results of tasks that have certain words, from the numbers in them."""


def solving(lines: Sequence[str], message: str) -> str | None:
    """Words to a task, to its answer, or to who asks for a procedure; None: the message is none of these. `lines` is
    what stands in the prompt beside the message.
    """
    if _TOLD.fullmatch(message):
        return "Noted."
    match = _TASK.fullmatch(message)
    if match is None:
        return None
    task = match[1]
    if message.startswith(REFLECT):
        return next((procedure(words) for words in PROCEDURES if words in task), UNSOLVED)
    for line in lines:
        solution, how = _TOLD.fullmatch(line), _PROCEDURE.match(line)
        if solution and solution[2] == task:
            return solution[1]
        if how and how[1] in task and how[1] in PROCEDURES:
            return str(PROCEDURES[how[1]](_numbers(task)))
    return UNSOLVED


def procedure(words: str) -> str:
    """Procedure for tasks with certain words, as the stand-in writes it and can follow it."""
    return f'Procedure for tasks with the words "{words}": take the numbers of the task, and work it out step by step.'


def _numbers(task: str) -> Sequence[int]:
    return [int(each.replace(" ", "")) for each in _NUMBER.findall(task)]


def _prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
