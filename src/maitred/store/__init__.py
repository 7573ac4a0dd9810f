"""The stores: what keeps the queues, their jobs and their places, behind one port."""
