"""Parts that ranks built from shares, kept in the cache for the next job: opened again, or dealt again for others.

    <cache>/parts/<fingerprint of input and rules>/iec-4      one folder for each policy and number of ranks

Drivers, called by all ranks at the same point. Invariant: rank 0 names the folder, so all ranks look for the same one;
a graph that cannot be kept is built again next time, and the job goes on.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from cpu_engine.comm.agreement import AgreedInputError
from cpu_engine.comm.collectives import RankInfo, broadcast_facts
from cpu_engine.comm.requests import Driver
from cpu_engine.errors import InputError
from cpu_engine.graph.distributed.assembly import BuiltPart
from cpu_engine.graph.distributed.parts_folder import deal_again, keep_parts, open_parts
from hybrid.config.schema import Config
from hybrid.graphs.opening import cache_folder, input_key
from hybrid.ranks.rendezvous import Agreed
from hybrid.terminal import note


@dataclass(frozen=True)
class KeptPart:
    """What was found of this rank's part, and whether just that is kept already."""

    built: BuiltPart | None
    there: bool


@dataclass(frozen=True)
class KeptParts:
    """Where the parts for this job are, or will be."""

    folder: Path
    fingerprint: str
    weighted: bool  # such parts are not dealt again: the input may turn out to have no weights

    def open(self, info: RankInfo, policy: str) -> Driver[KeptPart]:
        """The part as it was kept, or dealt again from parts for others; ``Agreed`` if they are damaged."""
        others = None
        if info.rank == 0:
            found = [] if self.weighted or self.folder.is_dir() else sorted(self.folder.parent.glob("*-*"))
            others = [str(one) for one in found if not one.name.endswith("-weighted")][:1]
        others = yield from broadcast_facts(info, others)
        try:
            built = yield from open_parts(info, self.folder)
            if built is not None:
                return KeptPart(built, True)
            if others:
                built = yield from deal_again(info, Path(others[0]), policy)
        except AgreedInputError as error:
            raise Agreed(error) from error
        return KeptPart(built, False)

    def keep(self, info: RankInfo, built: BuiltPart) -> Driver[None]:
        """For the next job; a remark by rank 0 where that cannot be."""
        try:
            yield from keep_parts(info, self.folder, built, self.fingerprint)
        except AgreedInputError as error:
            if info.rank == 0:
                note(f"the parts are not kept for the next job: {error.reason}")


def kept_parts(info: RankInfo, config: Config, policy: str, *, weighted: bool) -> Driver[KeptParts | None]:
    """None where the configuration keeps nothing, and where rank 0 cannot read the input."""
    if not (config.cluster.partition_cache and config.graph.cache):
        return None
    facts = None
    if info.rank == 0:
        try:
            key = json.dumps(input_key(config.graph), sort_keys=True, default=str)
            facts = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        except (InputError, OSError):  # the ranks find out together what is wrong with the input
            facts = None
    fingerprint = yield from broadcast_facts(info, facts)
    if fingerprint is None:
        return None
    name = f"{policy}-{info.size}{'-weighted' if weighted else ''}"
    return KeptParts(cache_folder(config.graph) / "parts" / fingerprint / name, fingerprint, weighted)
