"""The demo: recordings of answers, made by ``scripts/make_recordings.py``, and what plays them."""
