"""Every key, in one place. All keys of a queue share its hash tag, so that one Cluster slot holds them.

    maitred:{QUEUE}:<name>

A caller declares only `Floor`, for routing; the scripts build the others from its prefix with these names.
Keys that belong to no queue are each used alone, and may be in any slot.
"""

QUEUES = "maitred:queues"
KEYS = "maitred:keys"
AUDIT = "maitred:audit"

NAMES = {
    "Floor": "Floor",  # string: packed counters; it exists exactly if the queue does
    "Settings": "Settings",  # string: JSON
    "Crews": "Crews",  # string: JSON, number of a crew -> the needs that its workers serve
    "Paused": "Paused",  # string: when the queue was paused, and JSON, who did it and why
    "Jobs": "Jobs",  # hash: record -> what changes about a job; b + record -> its configuration, opaque;
    # x + record -> what only some jobs have; d + record -> what a stage handed on, opaque; n + record -> the
    # tries at its notices
    "Ids": "Ids",  # hash: job id -> record of its newest version
    "Lanes": "Lanes",  # string: JSON, the names of all lanes that may have a place, in order
    "Reservations": "Reservations.",  # + lane: sorted set of places, in line order by their bytes
    "SubmitterInfo": "SubmitterInfo.",  # + lane/submitter: sorted set of records, top of the stack first
    "Nonces": "Nonces.",  # + lane/submitter: sorted set of nonces by release
    "Own": "Own.",  # + submitter: sorted set of records that have a place of their own
    "Recent": "Recent.",  # + submitter: sorted set of counted submissions by time
    "Expiry": "Expiry",  # sorted set: records of waiting jobs by the time they expire
    "Ended": "Ended",  # sorted set: records of ended jobs by the time they ended
    "Kept": "Kept",  # sorted set: those that are kept with their batch, or until they have told all
    "Abandon": "Abandon",  # sorted set: records of jobs by when they are given up if nobody watches them
    "Notices": "Notices.",  # + job id: list of what its submitter is to be told, all versions together
    "NoticesDue": "NoticesDue",  # sorted set: ids of jobs with notices, by when the first is to be told
    "NoticeHeads": "NoticeHeads",  # hash: job id -> how often its first notice was tried, and its lock
    "Exempt": "Exempt",  # hash: submitter -> how many of its waiting jobs do not count against it
    "Holds": "Holds",  # hash: flag (kind:name) -> when, and JSON, who holds it and why
    "Held": "Held",  # sorted set: records of held jobs
    "HeldBy": "HeldBy.",  # + flag: sorted set of records that it holds
    "Returning": "Returning",  # list: flags that were taken away and still keep jobs
    "Outbox": "Outbox",  # sorted set: records whose state the ledger's tree has to hear
    "Gone": "Gone",  # list: ledger ids of jobs that were swept and that the tree has to forget
    "Batches": "Batches",  # hash: batch id -> its head; s + id -> the submission; r + id -> the last report
    "BatchIds": "BatchIds",  # hash: external id -> batch id
    "BatchList": "BatchList",  # sorted set: all batches by number
    "BatchWork": "BatchWork",  # sorted set: batches to be expanded or reported, by number
    "BatchSend": "BatchSend",  # sorted set: batches whose report is to be sent, by the time of the next try
    "BatchAge": "BatchAge",  # sorted set: batches by when they were last touched
    "BatchTrash": "BatchTrash",  # list: deleted batches that still have jobs
    "BatchJobs": "BatchJobs.",  # + batch id: sorted set of its job ids, in the order in which they came in
    "BatchRows": "BatchRows.",  # + batch id: hash, job id -> record, state last reported, label
    "Workers": "Workers",  # sorted set: workers by the end of their lease
    "WorkerInfo": "WorkerInfo",  # hash: worker -> slots, draining, crew
    "Free": "Free.",  # + crew: sorted set of its workers by free slots
    "Leases": "Leases.",  # + worker: hash, record -> token, start, class, duration, what it was told
    "Yielding": "Yielding.",  # + crew/class (0: interactive): sorted set of runs that can give way, by start
    "Credit": "Credit.",  # + crew: sorted set of runs that are being stopped, by the class they hold
    "Stopping": "Stopping",  # hash: record of a run that is being stopped -> job id; i + job id -> how many
    "Events": "Events",  # stream: what changed, an entry for each call, while a server listens
    "Inbox": "Inbox.",  # + worker: list of what it is told
    "About": "About",  # hash: worker -> JSON, what it says about itself
    "Output": "Output.",  # + record: hash, number -> a piece of what its runs said; '' -> first, last, bytes
    "Artifacts": "Artifacts.",  # + record: hash, name of a file that is kept -> its type and content
}


def prefix(queue: str) -> str:
    """Give the beginning of all keys of a queue."""
    return f"maitred:{{{queue}}}:"


def floor(queue: str) -> str:
    """Give the key that every script call declares."""
    return prefix(queue) + NAMES["Floor"]


def settings(queue: str) -> str:
    """Give where a queue's settings are."""
    return prefix(queue) + NAMES["Settings"]


def events(queue: str) -> str:
    """Give the stream of what changed in a queue."""
    return prefix(queue) + NAMES["Events"]


def inbox(queue: str, worker: str) -> str:
    """Give the list that a worker parks on."""
    return prefix(queue) + NAMES["Inbox"] + worker
