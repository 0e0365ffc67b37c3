"""Tools: what a model may call, whether a call fits, and what the model is told when it does not."""
