"""Maitred, a fair job queue on Valkey/Redis.

A maître d' takes reservations, seats every party in a fair order, quotes an honest wait, and loses nobody.
Maitred does that for shared compute.
"""
