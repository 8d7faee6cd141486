"""All flows of a capture, of which only so many are open at once."""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Callable, List, Optional

from . import service
from .captures import Capture, Frame, Packet, packets
from .flow import ACK, SYN, Flow, Key
from .series import Series

_SEQUENCE = struct.Struct(">I").unpack_from


class Table:
    """Puts packets into flows. A flow is closed when it was idle for so long, when too many are open, and at the end."""

    def __init__(self, capture: Capture, idle: int, most_open: int, closed: Callable[[Flow], None]) -> None:
        self.flows = 0
        self.pushed_out = 0  # closed because too many were open
        self.malformed = 0
        self.malformed_at: List[int] = []
        self.other = 0  # packets that are not IP
        self.begin: Optional[int] = None
        self.end: Optional[int] = None
        self.bytes = 0
        self.series = Series("packets", "bytes", "new_flows")
        self._capture = capture
        self._idle = idle
        self._most = most_open
        self._closed = closed
        self._open: "OrderedDict[Key, Flow]" = OrderedDict()  # the one that was idle longest first

    def run(self) -> None:
        """Read the whole capture."""
        for frame in self._capture:
            at = frame[2]
            self.bytes += frame[5]
            if at is not None:
                if self.begin is None or at < self.begin:
                    self.begin = at
                if self.end is None or at > self.end:
                    self.end = at
            opened = 0
            try:
                stack = packets(frame[3], frame[4])
                if stack:
                    opened = self._add(frame, stack[-1])
                else:
                    self.other += 1
            except (IndexError, struct.error):
                self.malformed += 1
                if len(self.malformed_at) < 10:
                    self.malformed_at.append(frame[0])
            if at is not None:
                self.series.add(at // 1000000000, 1, frame[5], opened)
        while self._open:
            self._closed(self._open.popitem(last=False)[1])

    def _add(self, frame: Frame, packet: Packet) -> int:
        _, source, destination, protocol, port, other, flags, start, stop, depth, head, _ = packet
        sequence = _SEQUENCE(frame[4], head + 4)[0] if protocol == 6 and port is not None else 0
        there: Key = (source, destination, protocol, port, other)
        back: Key = (destination, source, protocol, other, port)
        flow, forward = self._open.get(there), True
        if flow is None:
            flow, forward = self._open.get(back), False
        if flow is not None and self._over(flow, frame, flags, forward):
            self._closed(self._open.pop(flow.key))
            flow = None
        opened = 0
        if flow is None:
            swapped = protocol == 6 and flags & SYN and flags & ACK  # the answer is the first that was captured
            flow, forward = Flow(back if swapped else there, frame, depth), not swapped
            opened = 1
            self.flows += 1
            if len(self._open) >= self._most:
                self.pushed_out += 1
                self._closed(self._open.popitem(last=False)[1])
            self._open[flow.key] = flow
        else:
            self._open.move_to_end(flow.key)
        flow.add(frame, packet, forward, sequence)
        if stop > start and flow.read < 4 and port is not None:
            flow.read += 1
            said, detail = service.of(frame[4][start:stop], protocol, (port, other))
            flow.service, flow.detail = flow.service or said, flow.detail or detail
        if frame[2] is not None and opened:
            self._expire(frame[2])
        return opened

    def _over(self, flow: Flow, frame: Frame, flags: int, forward: bool) -> bool:
        """Whether a packet begins another flow between the same ends."""
        at = frame[2]
        if self._idle and at is not None and flow.end is not None and at - flow.end > self._idle:
            return True
        done = flow.to.flags & 1 and flow.back.flags & 1 or flow.reset_by
        return bool(self._idle and done and flow.key[2] == 6 and flags & SYN and not flags & ACK)

    def _expire(self, now: int) -> None:
        if not self._idle:
            return
        for _ in range(4):
            if not self._open:
                return
            oldest = next(iter(self._open.values()))
            if oldest.end is None or now - oldest.end <= self._idle:
                return
            self._closed(self._open.popitem(last=False)[1])

