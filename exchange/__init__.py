"""The file protocol between the coordinator and a worker, and nothing else.

``protocol`` decides and does no I/O; ``folder``, ``mailbox`` and ``watch`` do I/O and decide nothing; ``text`` and
``binary`` turn arrays into bytes and back; ``check`` judges the numbers of an answer. The page
docs/reference/protocol.md says the same to people who write their own worker.
"""
