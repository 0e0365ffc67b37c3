"""Transport: from a recording, or the network, to pieces of text. Knows events and errors, and no decoding."""
