"""The S3 server of moto, with one write at a time: `python moto_in_order.py PORT`.

moto checks whether a key exists and then writes it, in two steps. It sometimes accepts two of 16 concurrent conditional
writes. S3 does both in one step, and so does this server.
"""

from __future__ import annotations

import functools
import sys
import threading

from moto.s3.responses import S3Response
from moto.server import main

_ONE_AT_A_TIME = threading.Lock()


def in_order(put_object):
    @functools.wraps(put_object)
    def alone(self):
        with _ONE_AT_A_TIME:
            return put_object(self)

    return alone


if __name__ == "__main__":
    S3Response.put_object = in_order(S3Response.put_object)
    main(["-H", "127.0.0.1", "-p", sys.argv[1]])
