"""The Valkey/Redis store: each verb is one atomic script on the server."""
