"""One ledger, many wires: each module writes a history as one kind of server wants it, and reads it back (B6).

=============  ======================================================================
``openai``     ``messages`` of chat completions, to and from
``anthropic``  ``system`` and ``messages`` of the Messages API, to and from
``native``     the prompt text of the MiniMax M2 family, to
=============  ======================================================================
"""
