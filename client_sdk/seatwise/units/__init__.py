"""Offline work in numbered units, handed to workers: processes of this machine, files of answers, or a Ray cluster.

A `UnitPlan` names the function that does a unit, and the settings of all units. A `UnitRun` hands the units out, hands those of a
lost worker to another one, and does some of them again to find a worker that answers wrongly.
"""

from __future__ import annotations

from seatwise.units.plan import UnitAnswer, UnitPlan, UnitWorkers, WorkerLost
from seatwise.units.run import UnitEndsWorkers, UnitOptions, UnitRun, reading_units
from seatwise.units.unit_files import PartFiles, UnitFile
from seatwise.units.workers import LocalWorkers, RayWorkers, count_cores, make_workers

__all__ = [
    "LocalWorkers",
    "PartFiles",
    "RayWorkers",
    "UnitAnswer",
    "UnitEndsWorkers",
    "UnitFile",
    "UnitOptions",
    "UnitPlan",
    "UnitRun",
    "UnitWorkers",
    "WorkerLost",
    "count_cores",
    "make_workers",
    "reading_units",
]
