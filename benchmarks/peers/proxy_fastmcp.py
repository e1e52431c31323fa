"""FastMCP's proxy on standard streams, before the server that the command line names."""

import logging
import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

logging.disable(logging.CRITICAL)
proxy = create_proxy(StdioTransport(sys.argv[1], [sys.argv[2]]))
proxy.run(show_banner=False)
