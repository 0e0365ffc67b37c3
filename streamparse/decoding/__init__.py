"""Decoding: text and chunks in, events out. No sockets, no clocks, no threads."""
