"""The process that does units for `LocalWorkers`.

It is told the plan first, then the units, and answers each with a line. It ends with its parent, also while a bot thinks.
"""

from __future__ import annotations

import json

from seatwise.child_process import told_lines
from seatwise.output import AnswerOutput
from seatwise.units.plan import UnitPlan


def main() -> None:
    """Do units until the parent ends."""
    answers, told = AnswerOutput(), told_lines()
    plan = next(told)
    player = UnitPlan(plan["task"], plan["settings"]).open_player()
    for unit in told:
        result, note = player(unit["unit"], unit["told"])
        if fault := answers.fault:
            answers.print_line(json.dumps({"fault": [fault.errno, fault.strerror]}))
            return
        answers.print_line(json.dumps({"result": result, "note": note}))


if __name__ == "__main__":
    main()
