"""What is observed while a network trains.

An observable maps one network, as it stands, to named arrays; the engine batches it over runs and
calls it inside the compiled loop.
"""
