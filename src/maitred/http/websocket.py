"""One client's WebSocket: what it makes the server say is bounded, whether it reads or not.

What a session says waits until the client has room for it. A pong does not: it is written at once for each
ping, so a client that pings and never reads could fill the server's memory. It gets no pong until it reads.
"""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class WebSocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket whose pings are answered while there is room for the answer."""

    def handle_ping(self) -> None:
        """Answer a ping, or let it be."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()
