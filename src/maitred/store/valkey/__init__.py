"""A queue on Valkey or Redis 7.0 and newer: every verb is one atomic script in the server."""
