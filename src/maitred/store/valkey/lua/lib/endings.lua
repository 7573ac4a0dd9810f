-- How a run and a job end, and how a job comes back to the line.
-- gives: log, end_run, end_job, cancel_job, end_for_space, expire, set_message, to_front, stand_in_line, stand, supersede, go_on, let_return, return_space, give_back, expire_due, catch_up

local function run_entry(q, stage, version, attempt, worker, start, code)
  return struct.pack('<BI4HddHc0Bc0', stage, version, attempt, start, q.now, #worker, worker, #code, code)
end

local function log(q, r, lease, code)
  r.tail = r.tail .. run_entry(q, r.stage, r.version, r.attempt, r.worker, lease.start, code)
end

local function end_entry(code, message, result)
  return struct.pack(END, #code, code, #message, message, #result, result)
end

-- Says how the job ended, or, without a code, what it says of itself; its runs stay.
local function set_end(r, code, message, result)
  local _, _, _, at = struct.unpack(END, r.tail)
  r.tail = end_entry(code, message, result) .. string.sub(r.tail, at)
end

local function set_message(r, message)
  set_end(r, '', message, '')
end

-- The record of a running job as it is when its run ends it for good. This is what is done most often, so the
-- record is not taken apart for it. Counts it, and lists it as ended. Only for jobs that have no more to them.
local function end_run(q, record, bytes, lease, code, message, result)
  local stage, version, attempt = struct.unpack('<xBxxxxI4H', bytes)
  local _, _, _, worker, at = struct.unpack('<Hc0Hc0Hc0Hc0', bytes, STRINGS_AT)
  local _, _, _, runs = struct.unpack(END, bytes, at)
  local before, after = 4 + stage, code == '' and 4 or 3
  q.counts[before] = q.counts[before] - 1
  q.counts[after] = q.counts[after] + 1
  add(q, q.prefix .. K.Ended, q.now_text, record)
  if q.news then tell.ended(q, record, code) end
  return 'E' .. string.sub(bytes, 2, ENDED_AT - 1) .. struct.pack('<d', q.now)
    .. string.sub(bytes, ENDED_AT + 8, at - 1) .. end_entry(code, message, result)
    .. string.sub(bytes, runs) .. run_entry(q, stage, version, attempt, worker, lease.start, code)
end

-- Gives a job's space back, once.
local function return_space(q, r)
  if has(r, PROVISIONED) then
    mark(r, PROVISIONED, false)
    q.space_used = q.space_used - extra_of(q, r).space
  end
end

-- Ends the job for good. Its record must not stand in line any more. Where its end was known before, its submitter is
-- not told again.
local function end_job(q, r, code, message, result, known)
  counted(q, r, -1)
  if r.phase == 'H' then unlist_held(q, r) end
  return_space(q, r)
  local x = extra_of(q, r)
  if x.hold ~= '' then change_extra(q, r).hold = '' end
  r.phase, r.ended = 'E', q.now
  set_own(r, false)
  mark(r, BLOCKED, false)
  mark(r, LACKING, false)
  set_end(r, code, message, result)
  counted(q, r, 1)
  notices.drop_deadline(q, r)
  if code ~= 'superseded' and not known then notices.add(q, r, 'e', code) end
  add(q, q.prefix .. notices.list_of_ended(q, r), q.now_text, r.key)
  must_say(q, r)
  touch(q, r)
  if q.news then tell.ended(q, r.key, code) end
end

-- Ends a job wherever it is; a run of it is stopped.
local function cancel_job(q, r, code, message)
  if r.phase == 'W' then
    leave_line(q, r)
  elseif r.phase == 'R' then
    log(q, r, stop(q, r, 'cancelled'), code)
  end
  end_job(q, r, code, message, '')
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

local function end_for_space(q, r)
  end_job(q, r, 'space', string.format('needs %.0f bytes of space, and there are %.0f', extra_of(q, r).space,
    q.settings.space), '')
end

local function to_front(q, r)
  r.band, r.release, r.arrival = FRONT, q.now, next_seq(q)
end

-- Gives a job a place of its own at its release and arrival.
local function stand_in_line(q, r)
  if r.phase == 'H' then must_say(q, r) end
  counted(q, r, -1)
  r.phase, r.worker = 'W', ''
  counted(q, r, 1)
  mark(r, BLOCKED, is_blocked(q, r.id))
  mark(r, LACKING, lacks_space(q, r))
  if has(r, LACKING) and over_budget(q, r) then
    end_for_space(q, r)
    return
  end
  join_own(q, r)
  touch(q, r)
  if q.news then tell.changed(q, r) end
end

-- The same, unless something holds it.
local function stand(q, r)
  local reason = hold_reason(q, r)
  if reason then
    set_held(q, r, reason)
  else
    stand_in_line(q, r)
  end
end

-- Lets jobs go on whose hold was taken away, some in each step.
local function let_return(q)
  local left = C.RETURNS_PER_STEP
  while q.returning > 0 and left > 0 do
    local flag = call('LINDEX', q.prefix .. K.Returning, 0)
    local key = q.prefix .. K.HeldBy .. flag
    local records = call('ZRANGE', key, 0, left - 1)
    if #records > 0 then call('ZREMRANGEBYRANK', key, 0, #records - 1) end
    if call('EXISTS', key) == 0 then
      call('LPOP', q.prefix .. K.Returning)
      q.returning = q.returning - 1
    end
    for _, record in ipairs(records) do
      local r = job_at(q, record)
      if r and r.phase == 'H' then
        call('ZREM', q.prefix .. K.Held, record)
        stand(q, r)
      end
    end
    left = left - #records
  end
end

local function supersede(q, r)
  end_job(q, r, 'superseded', 'a newer version took its place', '')
end

-- Lets a job wait that ran; with a code, for another try. An older version that would wait ends instead.
local function go_on(q, r, code)
  if call('HGET', q.prefix .. K.Ids, r.id) == r.key then
    if code then notices.add(q, r, 'r', code) end
    stand(q, r)
  else
    supersede(q, r)
  end
end

-- Puts a job back at the front.
local function come_back(q, r, code)
  notices.add(q, r, 'r', code)
  to_front(q, r)
  stand(q, r)
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
      local code = lost and 'lost' or 'handed-back'
      log(q, r, lease, code)
      tell.returned(q, lease.record, code)
      if call('HGET', q.prefix .. K.Ids, r.id) ~= lease.record then
        go_on(q, r)
      elseif not (lost and lease.confirmed == 1) and r.unspent < q.settings.attempts then
        r.unspent = r.unspent + 1
        r.attempt = r.attempt - 1
        come_back(q, r, code)
      else
        r.unspent = 0
        if r.attempt >= q.settings.attempts then
          end_job(q, r, 'attempts', string.format('lost with its worker %d times', r.attempt), '')
        else
          come_back(q, r, code)
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
  for _, record in ipairs(call('ZRANGEBYSCORE', key, '-inf', q.now, 'LIMIT', 0, C.EXPIRIES_PER_STEP)) do
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

-- Cancels jobs that nobody watched for as long as they ask, a bounded number.
local function give_up_unwatched(q)
  if q.now < q.abandon_at then return end
  local key = q.prefix .. K.Abandon
  for _, record in ipairs(call('ZRANGEBYSCORE', key, '-inf', q.now, 'LIMIT', 0, C.EXPIRIES_PER_STEP)) do
    local r = job_at(q, record)
    local abandon = r and r.phase ~= 'E' and extra_of(q, r).abandon or 0
    if abandon > 0 then
      cancel_job(q, r, 'abandoned', string.format('nobody watched it for %g s', abandon / 1000000))
    else
      call('ZREM', key, record)
    end
  end
  q.abandon_at = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or NEVER
end

-- What the clock asks for before any verb: expired and abandoned jobs, and workers whose lease is over; some of each.
local function catch_up(q)
  expire_due(q)
  give_up_unwatched(q)
  if q.now >= q.lease_at then
    local key = q.prefix .. K.Workers
    for _, name in ipairs(call('ZRANGEBYSCORE', key, '-inf', q.now, 'LIMIT', 0, C.WORKERS_PER_STEP)) do
      local w = worker_at(q, name)
      give_back(q, w, all_leases(w), true)
      if not w.gone then forget_worker(q, w) end
    end
    q.lease_at = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or NEVER
  end
  if q.returning > 0 then let_return(q) end
  if q.now >= q.due_at then q.due_at = first_due_after(q) end
end
