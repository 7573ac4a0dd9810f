-- What submitters are to be told, and when jobs are given up that nobody watches. The notices of all versions of a job
-- are one list, so that they are told in order; a job counts its own that are untold, and is not swept before.
-- gives: notices

notices = {}

-- record, number, kind, when, attempt, stage, worker, code; then, of an end from which the job has gone on, its message
-- and result
local NOTICE, GONE_ON = '<c8dc1dHBHc0Bc0', '<I4c0I4c0'
-- Of the first notice of a job: how often it was tried, and token and owner of its lock, if it has one.
local LOCK = '<HBc0Hc0'
local ENDED = 'e'

-- The list that an ended job is in: those of a batch are kept as long as the batch, others until they have told all.
function notices.list_of_ended(q, r)
  local x = extra_of(q, r)
  return x.batch == '' and x.untold == 0 and K.Ended or K.Kept
end

-- So many notices of this version are untold; once all are told it can be swept.
function notices.set_untold(q, r, count)
  local before = notices.list_of_ended(q, r)
  change_extra(q, r).untold = count
  local after = notices.list_of_ended(q, r)
  if r.phase == 'E' and after ~= before then
    flush(q)
    call('ZREM', q.prefix .. before, r.key)
    call('ZADD', q.prefix .. after, r.ended, r.key)
  end
end

-- Pushes the oldest notice out that is neither an end nor being told.
local function push_out(q, key)
  local all = call('LRANGE', key, 0, -1)
  for i = 2, #all do
    local record, _, kind = struct.unpack(NOTICE, all[i])
    if kind ~= ENDED then
      call('LREM', key, 1, all[i])
      local r = job_at(q, record)
      if r then notices.set_untold(q, r, extra_of(q, r).untold - 1) end
      return
    end
  end
end

-- Adds what a job's submitter is to be told, where it wants to be: 's' started, 'r' requeued, 'e' ended.
function notices.add(q, r, kind, code)
  if r.flags < EXTRA or extra_of(q, r).callback == 0 then return end
  local key = q.prefix .. K.Notices .. r.id
  local count = call('RPUSH', key, struct.pack(NOTICE, r.key, next_seq(q), kind, q.now, r.attempt, r.stage,
    #r.worker, r.worker, #code, code))
  local x = change_extra(q, r)
  x.untold = x.untold + 1
  if count == 1 then call('ZADD', q.prefix .. K.NoticesDue, q.now_text, r.id) end
  if count > C.MOST_NOTICES then push_out(q, key) end
  tell.noticed(q)
end

-- Lets a notice of a job's end have what the record will lose when the job goes on.
function notices.keep_end(q, r)
  if extra_of(q, r).untold == 0 then return end
  local key = q.prefix .. K.Notices .. r.id
  for i, bytes in ipairs(call('LRANGE', key, 0, -1)) do
    local record, _, kind, at, _, _, _, _, size = struct.unpack(NOTICE, bytes)
    if record == r.key and kind == ENDED and at == r.ended then
      local _, message, result = struct.unpack(END, r.tail)
      call('LSET', key, i - 1, string.sub(bytes, 1, size - 1)
        .. struct.pack(GONE_ON, #message, message, #result, result))
    end
  end
end

-- Tells nothing more of a job.
function notices.drop(q, id)
  call('DEL', q.prefix .. K.Notices .. id)
  call('ZREM', q.prefix .. K.NoticesDue, id)
  call('HDEL', q.prefix .. K.NoticeHeads, id)
end

-- Whether a notice tells of an end whose run is still being stopped: it may have a result soon.
local function is_early(q, notice)
  local record, _, kind = struct.unpack(NOTICE, notice)
  local r = kind == ENDED and q.stops > 0 and job_at(q, record)
  return r and speech.goes_on(q, r)
end

-- Locks first notices that are due, the longest due first; answers {record, notice, tries} of each.
function notices.lock(q, owner, token, limit)
  local due, until_when = q.prefix .. K.NoticesDue, q.now + C.LOCKED_FOR
  local found = {}
  for _, id in ipairs(call('ZRANGEBYSCORE', due, '-inf', q.now, 'LIMIT', 0, limit)) do
    local first = call('LINDEX', q.prefix .. K.Notices .. id, 0)
    if first and is_early(q, first) then
      call('ZADD', due, q.now + C.STOP_PATIENCE, id)
    elseif first then
      local head, tries = call('HGET', q.prefix .. K.NoticeHeads, id), 0
      if head then tries = struct.unpack('<H', head) end
      call('HSET', q.prefix .. K.NoticeHeads, id, struct.pack(LOCK, tries, #token, token, #owner, owner))
      call('ZADD', due, until_when, id)
      found[#found + 1] = { string.sub(first, 1, 8), first, tries }
    else
      notices.drop(q, id)
    end
  end
  return found
end

-- Keeps a try in the log of its version, which holds a bounded number.
local function log_try(q, r, try)
  local key, field = q.prefix .. K.Jobs, 'n' .. r.key
  local kept, at, count = call('HGET', key, field) or '', 1, 1
  while at <= #kept do
    at, count = at + 2 + struct.unpack('<H', kept, at), count + 1
  end
  if count > C.DELIVERIES_KEPT then kept = string.sub(kept, 3 + struct.unpack('<H', kept)) end
  call('HSET', key, field, kept .. struct.pack('<Hc0', #try, try))
end

-- Logs a try at the first notice under its lock; it is tried again at a moment, or, with 0, the next one is due.
-- Answers whether the lock is held.
function notices.told(q, r, number, token, try, again_at)
  local key, due = q.prefix .. K.Notices .. r.id, q.prefix .. K.NoticesDue
  local first, head = call('LINDEX', key, 0), call('HGET', q.prefix .. K.NoticeHeads, r.id)
  if not first or not head or token == '' then return false end
  local record, first_number = struct.unpack('<c8d', first)
  local tries, locked_by = struct.unpack(LOCK, head)
  if locked_by ~= token or record ~= r.key or first_number ~= number then return false end
  log_try(q, r, try)
  if again_at > 0 then
    call('HSET', q.prefix .. K.NoticeHeads, r.id, struct.pack(LOCK, tries + 1, 0, '', 0, ''))
    call('ZADD', due, again_at, r.id)
    return true
  end
  call('LPOP', key)
  call('HDEL', q.prefix .. K.NoticeHeads, r.id)
  if call('EXISTS', key) == 1 then
    call('ZADD', due, q.now_text, r.id)
  else
    call('ZREM', due, r.id)
  end
  notices.set_untold(q, r, extra_of(q, r).untold - 1)
  return true
end

-- Counts the time anew after which a job is given up, unless somebody watches it.
function notices.set_deadline(q, r)
  local abandon = extra_of(q, r).abandon
  if abandon == 0 or r.phase == 'E' then return end
  call('ZADD', q.prefix .. K.Abandon, q.now + abandon, r.key)
  q.abandon_at = math.min(q.abandon_at, q.now + abandon)
end

function notices.drop_deadline(q, r)
  if extra_of(q, r).abandon > 0 then call('ZREM', q.prefix .. K.Abandon, r.key) end
end

-- Takes in whether a job's submitter is told of it (1 or 0), and after what time without a watcher it is given up.
function notices.describe(q, r, callback, abandon)
  local known = extra_of(q, r)
  if known.callback ~= callback or known.abandon ~= abandon then
    notices.drop_deadline(q, r)
    local x = change_extra(q, r)
    x.callback, x.abandon = callback, abandon
  end
  notices.set_deadline(q, r)
end
