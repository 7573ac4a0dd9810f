-- Records as bytes. A record has a head of fixed shape, and a tail that only grows: code, message and result,
-- then one entry per run. A change of shape here is a new SCHEMA.

local call, trunc = redis.call, math.floor
local FRONT, IMMEDIATE, SCHEDULED, INTERACTIVE = 0, 1, 2, 4
local OWN, ELASTIC, OLDER, BLOCKED, LACKING, PROVISIONED, EXEMPT, EXTRA = 1, 2, 4, 8, 16, 32, 64, 128
-- How a run gives way: not at all, past the fastest cap, or first of all.
local SPECIFIC_RUN, ELASTIC_RUN, INTERACTIVE_RUN = 0, 1, 2
-- After these the record is no longer the run's: its end, or its removal, was told when the stop was asked.
local SETTLED = { cancelled = true, deleted = true, moved = true }
local NEVER = math.huge
local NOTHING = {}
local TOP = 9007199254740992
local HEAD = '<c1BBBBBI4HHHi4ddddddddHc0Hc0Hc0Hc0'
-- Where the time of the end and the strings stand in a head, for the one change that does not take it apart.
local ENDED_AT, STRINGS_AT = 61, 85
local END = '<Bc0I4c0I4c0'
local NO_END = struct.pack(END, 0, '', 0, '', 0, '')
-- A small hash with a value of more than 64 bytes is no list that is walked to find a lease, so they are padded.
local LEASE = '<c16ddBBBdBc0Bc0'
local PADDED_LEASE = LEASE .. string.rep('x', 20)
local START = '<c1c8c16ddI4HHc0Hc0I4c0I4c0Hc0d'
-- What only some jobs have: batch, profile, space needed, identifiers, their own hold, their id and the version of
-- their state in the ledger's tree, how far their run says that it is, what files are kept of them, whether their
-- submitter is told of them, after what time without a watcher they are given up, and how many notices are untold.
local EXTRAS = '<Hc0Hc0dI4c0I4c0Hc0dI4c0I4c0BdI4'
local NO_EXTRA = { batch = '', profile = '', space = 0, identifiers = '', hold = '', ledger = '', status = 0,
  progress = '', artifacts = '', callback = 0, abandon = 0, untold = 0 }

local function key8(number)
  return struct.pack('>I8', number)
end

local function number8(bytes)
  return (struct.unpack('>I8', bytes))
end

-- A table made in one piece is much cheaper than one that grows field by field.
local function decode_job(key, bytes)
  local phase, stage, band, priority, level, flags, version, attempt, unspent, retries, recent,
    created, release, arrival, expires, delay, ended, previous, duration,
    id, submitter, need, worker, at = struct.unpack(HEAD, bytes)
  return { key = key, record = number8(key), phase = phase, stage = stage, band = band, priority = priority,
    level = level, flags = flags, version = version, attempt = attempt, unspent = unspent, retries = retries,
    recent = recent, created = created, release = release, arrival = arrival, expires = expires, delay = delay,
    ended = ended, previous = previous, duration = duration, id = id, submitter = submitter, need = need, worker = worker,
    tail = string.sub(bytes, at), saved = false, gone = false, extra = false }
end

local function encode_job(r)
  return struct.pack(HEAD, r.phase, r.stage, r.band, r.priority, r.level, r.flags, r.version, r.attempt, r.unspent,
    r.retries, r.recent, r.created, r.release, r.arrival, r.expires, r.delay, r.ended, r.previous,
    r.duration, #r.id, r.id, #r.submitter, r.submitter, #r.need, r.need, #r.worker, r.worker) .. r.tail
end

local function decode_extra(bytes)
  local batch, profile, space, identifiers, hold, ledger, status, progress, artifacts, callback, abandon, untold =
    struct.unpack(EXTRAS, bytes)
  return { batch = batch, profile = profile, space = space, identifiers = identifiers, hold = hold, ledger = ledger,
    status = status, progress = progress, artifacts = artifacts, callback = callback, abandon = abandon,
    untold = untold }
end

local function encode_extra(x)
  return struct.pack(EXTRAS, #x.batch, x.batch, #x.profile, x.profile, x.space, #x.identifiers, x.identifiers,
    #x.hold, x.hold, #x.ledger, x.ledger, x.status, #x.progress, x.progress, #x.artifacts, x.artifacts, x.callback,
    x.abandon, x.untold)
end

local function decode_lease(bytes)
  local token, start, number, confirmed, level, kind, duration, lowered, stopping = struct.unpack(LEASE, bytes)
  return { token = token, start = start, number = number, confirmed = confirmed, level = level, kind = kind,
    duration = duration, lowered = lowered, stopping = stopping, record = false, at = false }
end

local function encode_lease(l)
  return struct.pack(PADDED_LEASE, l.token, l.start, l.number, l.confirmed, l.level, l.kind, l.duration,
    #l.lowered, l.lowered, #l.stopping, l.stopping)
end

local function encode_start(r, x, token, start, duration, body, data)
  return struct.pack(START, 'S', r.key, token, start, duration, r.version, r.attempt, #r.id, r.id, #r.need, r.need,
    #data, data, #x.identifiers, x.identifiers, #x.ledger, x.ledger, x.status) .. body
end

-- Flags: a place of its own, elastic, whether an older version may still run, whether it waits for a stop, lacks space,
-- has space, does not count against its submitter, and has more to it.
local function has(r, flag)
  local flags = r.flags
  return flags >= flag and trunc(flags / flag) % 2 == 1
end

local function mark(r, flag, on)
  if has(r, flag) ~= on then r.flags = r.flags + (on and flag or -flag) end
end

local function is_own(r)
  return r.flags % 2 == OWN
end

local function set_own(r, own)
  mark(r, OWN, own)
end

local lane_prefix = {}

local function lane_name(band, priority, level, need)
  if band < SCHEDULED then priority = 0 end
  local index = band * 10000 + priority * 100 + level
  local prefix = lane_prefix[index]
  if not prefix then
    prefix = string.format('%d.%02d.%02d.', band, priority, level)
    lane_prefix[index] = prefix
  end
  return prefix .. need
end

-- Nobody serves the need of a job that waits for a stop; one that lacks space stands in lanes of its own.
local function need_of(r, need)
  if has(r, LACKING) then need = LACKING_NEED .. need end
  return has(r, BLOCKED) and BLOCKED_NEED .. need or need
end

local function lane_of(r)
  return lane_name(r.band, r.priority, r.level, need_of(r, r.need))
end
