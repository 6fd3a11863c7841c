"""Vertex programs: fields and operators that a user writes; the runtime chooses, tracks, synchronises and ends."""

from cpu_engine.programs.field import Field
from cpu_engine.programs.launch import Step
from cpu_engine.programs.program import VertexProgram
from cpu_engine.programs.ranks import PartResult, ProgramOnRanks, run_on_parts
from cpu_engine.programs.run import ProgramResult, Runner, run

__all__ = [
    "Field",
    "PartResult",
    "ProgramOnRanks",
    "ProgramResult",
    "Runner",
    "Step",
    "VertexProgram",
    "run",
    "run_on_parts",
]
