"""Messages that are not sent: load every kernel that packs and unpacks updates before a clock runs.

Which of them a search needs depends on the graph, the parts and on what arrives when: lists that are a range of ids or
have gaps, values that differ by 0, 1, 2 or 4 bytes.
"""

from __future__ import annotations

import numpy as np

from cpu_engine.comm.encoding import AgreedList, Room, pack_improved, unpack_min
from cpu_engine.comm.kernels.pack import forget_sent_step, note_known_step

_ENTRIES = 128
_MOST = 0xFFFFFFFF
_SPANS = (0, 1, 1 << 8, 1 << 16)


def rehearse_messages() -> None:
    """Pack updates of all widths for lists of both kinds, and unpack them."""
    for gap in (1, 2):
        agreed = AgreedList.of(np.arange(0, gap * _ENTRIES, gap, dtype=np.int32))
        room, last_sent = Room(agreed.total), np.empty(agreed.total, np.uint32)
        for span in _SPANS:
            values, heard = np.full((2, gap * _ENTRIES), _MOST, np.uint32)
            values[: _ENTRIES // 2] = 1
            values[0] += span
            forget_sent_step(last_sent)
            packed = pack_improved(agreed, values, last_sent, room)
            changed = unpack_min(packed.payload, agreed, heard, room)
            note_known_step(changed, agreed.begin, agreed.indices, agreed.total, heard, last_sent)
