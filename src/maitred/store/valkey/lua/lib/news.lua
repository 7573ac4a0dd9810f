-- What changed, for servers that listen: each call writes one entry to the stream `Events`, made of small records
-- (see news.py). Nobody listening, nothing is written. Entries are numbered, so that a reader sees a gap.
-- gives: tell
tell = {}

local function note(q, text)
  q.news[#q.news + 1] = text
end

-- A place was added (A) or removed (R), or all of a lane up to it were taken (T).
function tell.place(q, kind, lane, order)
  note(q, struct.pack('<c1Hc0', kind, #lane, lane) .. order)
end

-- A run gave its units back (U) or is being stopped (X).
function tell.run(q, kind, record)
  note(q, kind .. record)
end

-- A job was submitted, changed or moved, or waits again; it is in this phase and stage from now on.
function tell.changed(q, r)
  note(q, struct.pack('<c1c8c1B', 'c', r.key, r.phase, r.stage))
end

-- A job's record is gone, so its id is told.
function tell.deleted(q, r)
  note(q, struct.pack('<c1c8Hc0', 'd', r.key, #r.id, r.id))
end

function tell.start(q, r, level, kind, duration)
  note(q, struct.pack('<c1c8I4HBBddHc0Hc0', 'S', r.key, r.version, r.attempt, level, kind, q.now, duration,
    #r.worker, r.worker, #r.need, r.need))
end

function tell.lowered(q, lease)
  note(q, struct.pack('<c1c8Bd', 'L', lease.record, lease.level, lease.duration))
end

function tell.ended(q, record, code)
  note(q, struct.pack('<c1c8Bc0', 'E', record, #code, code))
end

-- A run ended and its work is not done (F): it was lost, handed back, or failed and is tried again.
function tell.returned(q, record, code)
  if q.news then note(q, struct.pack('<c1c8Bc0', 'F', record, #code, code)) end
end

-- A job has a newer version.
function tell.version(q, older, newer)
  note(q, 'V' .. older .. newer)
end

-- A run said something: the pieces from `first` to `last`.
function tell.said(q, record, first, last)
  note(q, struct.pack('<c1c8dd', 'o', record, first, last))
end

-- Workers, settings or the pause changed: better look again.
function tell.house(q)
  if q.news then note(q, 'H') end
end

-- A submitter is to be told something; said once in a call.
function tell.noticed(q)
  if q.news and not q.noticed then note(q, 'N') end
  q.noticed = true
end

function tell.batch(q, id)
  if q.news then note(q, struct.pack('<c1Bc0', 'B', #id, id)) end
end

function tell.publish(q)
  if not q.news or #q.news == 0 then return end
  q.told = q.told + 1
  call('XADD', q.prefix .. K.Events, 'MAXLEN', '~', C.EVENTS_KEPT, '*', 'e',
    struct.pack('<dd', q.told, q.now) .. table.concat(q.news))
  q.news = {}
end
