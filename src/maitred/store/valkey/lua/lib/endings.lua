-- How a run and a job end, and how a job comes back to the line.
-- gives: log, end_run, end_job, expire, end_stopped, to_front, give_back, expire_due, catch_up, sweep

local function run_entry(q, stage, version, attempt, worker, start, code)
  return struct.pack('<BI4HddHc0Bc0', stage, version, attempt, start, q.now, #worker, worker, #code, code)
end

local function log(q, r, lease, code)
  r.tail = r.tail .. run_entry(q, r.stage, r.version, r.attempt, r.worker, lease.start, code)
end

local function end_entry(code, message, result)
  return struct.pack('<Bc0I4c0I4c0', #code, code, #message, message, #result, result)
end

-- The record of a running job as it is when its run ends it for good. This is what is done most often, so the
-- record is not taken apart for it. Counts it, and lists it as ended.
local function end_run(q, record, bytes, lease, code, message, result)
  local stage, version, attempt = struct.unpack('<xBxxxxI4H', bytes)
  local _, _, _, worker, at = struct.unpack('<Hc0Hc0Hc0Hc0', bytes, STRINGS_AT)
  local before, after = 4 + stage, code == '' and 4 or 3
  q.counts[before] = q.counts[before] - 1
  q.counts[after] = q.counts[after] + 1
  add(q, q.prefix .. K.Ended, q.now_text, record)
  if q.news then tell_end(q, record, code) end
  return 'E' .. string.sub(bytes, 2, ENDED_AT - 1) .. struct.pack('<d', q.now)
    .. string.sub(bytes, ENDED_AT + 8, at - 1) .. end_entry(code, message, result)
    .. string.sub(bytes, at + #NO_END) .. run_entry(q, stage, version, attempt, worker, lease.start, code)
end

-- Ends the job for good. Its record must not stand in line any more.
local function end_job(q, r, code, message, result)
  counted(q, r, -1)
  r.phase, r.ended = 'E', q.now
  set_own(r, false)
  mark(r, BLOCKED, false)
  r.tail = end_entry(code, message, result) .. string.sub(r.tail, #NO_END + 1)
  counted(q, r, 1)
  add(q, q.prefix .. K.Ended, q.now_text, r.key)
  touch(q, r)
  if q.news then tell_end(q, r.key, code) end
end

local function expire(q, r)
  end_job(q, r, 'expired', 'it was still waiting when it expired', '')
end

-- Ends a run that was told to stop, or that cannot go on elsewhere, and whose worker does not say how.
local function end_stopped(q, r, lease)
  local code = lease.stopping ~= '' and lease.stopping or 'halted'
  local message = code == 'halted' and 'its worker stopped'
    or string.format('time limit %g s', lease.duration / 1000000)
  log(q, r, lease, code)
  end_job(q, r, code, message, '')
end

local function to_front(q, r)
  r.phase, r.band, r.worker = 'W', FRONT, ''
  r.release, r.arrival = q.now, next_seq(q)
  mark(r, BLOCKED, is_blocked(q, r.id))
  join_own(q, r)
  touch(q, r)
  if q.news then tell_run(q, 'C', r.key) end
end

-- Gives back the leases (all of one worker): last started first, so that the first started goes first again.
local function give_back(q, w, leases, lost)
  table.sort(leases, function(a, b) return a.number > b.number end)
  local records = {}
  for i, lease in ipairs(leases) do records[i] = lease.record end
  if #records == 0 then return end
  load_jobs(q, records)
  unhand(q, w, leases)
  for _, lease in ipairs(leases) do
    local r = q.jobs[lease.record]
    if not SETTLED[lease.stopping] and ((lease.stopping ~= '' and lease.confirmed == 1)
      or lease.kind == INTERACTIVE_RUN) then
      end_stopped(q, r, lease)
    elseif not SETTLED[lease.stopping] then
      log(q, r, lease, lost and 'lost' or 'handed-back')
      if call('HGET', q.prefix .. K.Ids, r.id) ~= lease.record then
        end_job(q, r, 'superseded', 'a newer version took its place', '')
      elseif not (lost and lease.confirmed == 1) and r.unspent < q.settings.attempts then
        r.unspent = r.unspent + 1
        r.attempt = r.attempt - 1
        to_front(q, r)
      else
        r.unspent = 0
        if r.attempt >= q.settings.attempts then
          end_job(q, r, 'attempts', string.format('lost with its worker %d times', r.attempt), '')
        else
          to_front(q, r)
        end
      end
    end
  end
end

-- Ends jobs that expired in line, a bounded number.
local function expire_due(q)
  if q.now < q.expiry_at then return end
  flush(q)
  local key = q.prefix .. K.Expiry
  for _, record in ipairs(call('ZRANGEBYSCORE', key, '-inf', q.now, 'LIMIT', 0, EXPIRIES_PER_STEP)) do
    local r = job_at(q, record)
    if r and r.phase == 'W' then
      leave_line(q, r)
      expire(q, r)
    else
      call('ZREM', key, record)
    end
  end
  q.expiry_at = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or NEVER
end

-- What the clock asks for before any verb: expired jobs, and workers whose lease is over; some of each.
local function catch_up(q)
  expire_due(q)
  if q.now >= q.lease_at then
    local key = q.prefix .. K.Workers
    for _, name in ipairs(call('ZRANGEBYSCORE', key, '-inf', q.now, 'LIMIT', 0, WORKERS_PER_STEP)) do
      local w = worker_at(q, name)
      give_back(q, w, all_leases(w), true)
      if not w.gone then forget_worker(q, w) end
    end
    q.lease_at = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or NEVER
  end
  if q.now >= q.due_at then q.due_at = first_due_after(q) end
end

-- Takes an ended version out of its job's chain of versions.
local function unlink(q, r)
  local newest = call('HGET', q.prefix .. K.Ids, r.id)
  local older = r.previous > 0 and job_at(q, key8(r.previous))
  if newest == r.key then
    if older then
      call('HSET', q.prefix .. K.Ids, r.id, key8(r.previous))
    else
      call('HDEL', q.prefix .. K.Ids, r.id)
    end
  elseif older then
    local newer = newest and job_at(q, newest)
    while newer and newer.previous ~= r.record do
      newer = newer.previous > 0 and job_at(q, key8(newer.previous))
    end
    if newer then
      newer.previous = r.previous
      touch(q, newer)
    end
  end
end

-- Forgets jobs that ended longer ago than the retention, at most `limit`, oldest first.
local function sweep(q, limit)
  flush(q)
  local key = q.prefix .. K.Ended
  local old = call('ZRANGEBYSCORE', key, '-inf', q.now - q.settings.retention, 'LIMIT', 0, limit)
  if #old == 0 then return 0 end
  load_jobs(q, old)
  for _, record in ipairs(old) do
    local r = q.jobs[record]
    if r then
      counted(q, r, -1)
      unlink(q, r)
      forget(q, r)
    end
  end
  take_out('ZREM', key, old)
  return #old
end
