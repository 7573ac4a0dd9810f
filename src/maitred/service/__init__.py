"""The use cases: what a caller may ask of a queue, each one check, one verb of the store and one answer."""
