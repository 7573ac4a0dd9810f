-- What changed, for servers that listen: each call writes one entry to the stream `Events`, made of small records
-- (see news.py). Nobody listening, nothing is written. Entries are numbered, so that a reader sees a gap.
-- gives: tell_place, tell_run, tell_start, tell_lowered, tell_end, tell_version, tell_house, publish
local function tell(q, text)
  q.news[#q.news + 1] = text
end

-- A place was added (A) or removed (R), or all of a lane up to it were taken (T).
local function tell_place(q, kind, lane, order)
  tell(q, struct.pack('<c1Hc0', kind, #lane, lane) .. order)
end

-- A run gave its units back (U) or is being stopped (X); a job changed (C) or was deleted (D).
local function tell_run(q, kind, record)
  tell(q, kind .. record)
end

local function tell_start(q, r, level, kind, duration)
  tell(q, struct.pack('<c1c8I4HBBddHc0Hc0', 'S', r.key, r.version, r.attempt, level, kind, q.now, duration,
    #r.worker, r.worker, #r.need, r.need))
end

local function tell_lowered(q, lease)
  tell(q, struct.pack('<c1c8Bd', 'L', lease.record, lease.level, lease.duration))
end

local function tell_end(q, record, code)
  tell(q, struct.pack('<c1c8Bc0', 'E', record, #code, code))
end

-- A job has a newer version.
local function tell_version(q, older, newer)
  tell(q, 'V' .. older .. newer)
end

-- Workers, settings or the pause changed: better look again.
local function tell_house(q)
  if q.news then tell(q, 'H') end
end

local function publish(q)
  if not q.news or #q.news == 0 then return end
  q.told = q.told + 1
  call('XADD', q.prefix .. K.Events, 'MAXLEN', '~', EVENTS_KEPT, '*', 'e',
    struct.pack('<dd', q.told, q.now) .. table.concat(q.news))
  q.news = {}
end
