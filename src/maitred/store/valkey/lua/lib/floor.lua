-- The Floor: workers, their slots and their leases. `Workers` has each worker's lease end, `WorkerInfo` its
-- slots and crew, `Free.<crew>` the free slots of workers that serve the same, `Leases.<worker>` what it holds.
-- Runs that can be made to give way are in `Yielding.<crew>/<class>`, those that are being stopped in
-- `Credit.<crew>`; neither has those of a draining worker.
-- gives: live_of, note_stop, stop_confirmed, worker_at, save_worker, settle, list_free, forget_worker, extend, yielding, reach_of, yields_of, listing, list_run, is_blocked, unhand, free_of, held, all_leases, set_draining, lease_of, say_stop, say_lower, stop_run, stop, lower_run

local INFO = '<HBc0'

local function free_of(w)
  return w.draining and 0 or math.max(0, w.slots - w.busy)
end

local function live_of(w)
  return w.draining and 0 or w.slots
end

-- A worker; `busy` is the number of its leases, `said` and `live` the free and live slots that the floor counts.
local function worker_at(q, name)
  local bytes = call('HGET', q.prefix .. K.WorkerInfo, name)
  if not bytes then return nil end
  local leases = q.prefix .. K.Leases .. name
  local w = { name = name, slots = (struct.unpack('<H', bytes)), draining = string.byte(bytes, 3) == 1,
    crew = string.sub(bytes, 4), leases = leases, busy = call('HLEN', leases), said = 0, live = 0, listed = true,
    gone = false }
  w.said, w.live = free_of(w), live_of(w)
  return w
end

local function save_worker(q, w)
  call('HSET', q.prefix .. K.WorkerInfo, w.name,
    struct.pack(INFO, w.slots, w.draining and 1 or 0, w.crew))
end

-- Counts the worker's slots as they are now; `listed` tells whether `Free` says so too.
local function settle(q, w)
  local free, live = free_of(w), live_of(w)
  if free ~= w.said then w.listed = false end
  q.free, q.slots = q.free - w.said + free, q.slots - w.live + live
  w.said, w.live = free, live
end

local function list_free(q, w)
  if w.draining then
    call('ZREM', q.prefix .. K.Free .. w.crew, w.name)
  elseif not w.listed then
    call('ZADD', q.prefix .. K.Free .. w.crew, w.said, w.name)
  end
  w.listed = true
end

local function forget_worker(q, w)
  w.draining, w.gone = true, true
  tell.house(q)
  settle(q, w)
  list_free(q, w)
  call('ZREM', q.prefix .. K.Workers, w.name)
  call('HDEL', q.prefix .. K.WorkerInfo, w.name)
  call('HDEL', q.prefix .. K.About, w.name)
  call('DEL', q.prefix .. K.Inbox .. w.name, w.leases)
  q.sent[w.name] = nil
end

local function extend(q, w)
  local lease_end = q.now + q.settings.lease
  call('ZADD', q.prefix .. K.Workers, lease_end, w.name)
  if lease_end < q.lease_at then q.lease_at = lease_end end
end

local function yielding(q, crew, class)
  return q.prefix .. K.Yielding .. crew .. '/' .. class
end

-- Where a run is listed, with its score: as one that is being stopped, that can give way, or nowhere. Counts it.
local function listing(q, crew, lease, by)
  if lease.stopping ~= '' then return q.prefix .. K.Credit .. crew, lease.level end
  if lease.kind == INTERACTIVE_RUN then
    q.halts = q.halts + by
    return yielding(q, crew, 0), lease.start
  end
  if lease.kind == ELASTIC_RUN and (q.settings.borrow or lease.level > 1) then
    q.elastics = q.elastics + by
    return yielding(q, crew, lease.level), lease.start
  end
end

local function list_run(q, w, lease)
  if w.draining then return end
  local key, score = listing(q, w.crew, lease, 1)
  if not key then return end
  call('ZADD', key, score, lease.record .. w.name)
  q.cut_at = math.min(q.cut_at, lease.start + q.settings.caps[1])
end

local function unlist_run(q, w, lease)
  if w.draining then return end
  local key = listing(q, w.crew, lease, -1)
  if key then call('ZREM', key, lease.record .. w.name) end
end

-- The highest class in which an elastic run could give up units.
local function reach_of(q)
  if q.elastics > 0 and not q.settings.borrow then
    for k = #q.settings.caps, 2, -1 do
      for crew in pairs(q.crews.list) do
        if call('EXISTS', yielding(q, crew, k)) == 1 then return k end
      end
    end
  end
  return 1
end

-- How many units of each level over the first elastic runs could give up.
local function yields_of(q)
  local yields, count, squeezed = {}, 0, q.elastics > 0 and not q.settings.borrow
  for k = #q.settings.caps, 2, -1 do
    if squeezed then
      for crew in pairs(q.crews.list) do count = count + call('ZCARD', yielding(q, crew, k)) end
    end
    yields[k] = count
  end
  return yields
end

-- The newest version of a job waits for a stop, or does so no more; it has a place of its own from then on.
local function set_blocked(q, id, blocked)
  write_ids(q)
  local record = call('HGET', q.prefix .. K.Ids, id)
  local r = record and job_at(q, record)
  if not r or r.phase ~= 'W' or has(r, BLOCKED) == blocked then return end
  leave_line(q, r)
  mark(r, BLOCKED, blocked)
  join_own(q, r)
  touch(q, r)
  q.moved = true
  if q.news then tell.changed(q, r) end
end

local function is_blocked(q, id)
  return q.stops > 0 and call('HEXISTS', q.prefix .. K.Stopping, 'i' .. id) == 1
end

local function note_stop(q, record, id)
  call('HSET', q.prefix .. K.Stopping, record, id)
  call('HINCRBY', q.prefix .. K.Stopping, 'i' .. id, 1)
  set_blocked(q, id, true)
end

local function stop_confirmed(q, record)
  local key = q.prefix .. K.Stopping
  local id = call('HGET', key, record)
  q.stops = q.stops - 1
  call('HDEL', key, record)
  if call('HINCRBY', key, 'i' .. id, -1) == 0 then
    call('HDEL', key, 'i' .. id)
    set_blocked(q, id, false)
  end
end

-- Gives slots and units back, once; a draining worker that holds nothing more is gone.
local function unhand(q, w, leases)
  local records, listed, stopped, used = {}, {}, {}, q.used
  for i, lease in ipairs(leases) do
    records[i] = lease.record
    if q.news then tell.run(q, 'U', lease.record) end
    for k = 1, lease.level do used[k] = used[k] - 1 end
    local stopping = lease.stopping ~= ''
    if stopping then stopped[#stopped + 1] = lease.record end
    local key = (stopping or lease.kind ~= SPECIFIC_RUN) and not w.draining and listing(q, w.crew, lease, -1)
    if key then
      local members = listed[key] or {}
      members[#members + 1] = lease.record .. w.name
      listed[key] = members
    end
  end
  if #records > 0 then w.busy = w.busy - take_out('HDEL', w.leases, records) end
  for key, members in pairs(listed) do take_out('ZREM', key, members) end
  if w.draining and w.busy == 0 then
    forget_worker(q, w)
  else
    settle(q, w)
  end
  for _, record in ipairs(stopped) do stop_confirmed(q, record) end
end

-- The leases that the worker holds of those named: `record, token` pairs from args[first] on.
-- Answers the held ones, and the records of those that are lost.
local function held(w, args, first, step)
  local records, found, lost = {}, {}, {}
  for i = first, #args, step do records[#records + 1] = args[i] end
  if #records == 0 then return found, lost end
  local got = w and hmget(w.leases, records) or {}
  local seen = {}
  for i, record in ipairs(records) do
    local lease = got[i] and not seen[record] and decode_lease(got[i])
    if lease and lease.token == args[first + (i - 1) * step + 1] then
      seen[record] = true
      lease.record, lease.at = record, first + (i - 1) * step
      found[#found + 1] = lease
    else
      lost[#lost + 1] = record
    end
  end
  return found, lost
end

local function all_leases(w)
  local flat, leases = call('HGETALL', w.leases), {}
  for i = 1, #flat, 2 do
    local lease = decode_lease(flat[i + 1])
    lease.record = flat[i]
    leases[#leases + 1] = lease
  end
  return leases
end

-- What a draining worker runs is listed neither to give way nor as credit.
local function set_draining(q, w, draining)
  if w.draining == draining then return end
  local leases = w.busy > 0 and all_leases(w) or {}
  for _, lease in ipairs(leases) do unlist_run(q, w, lease) end
  w.draining = draining
  for _, lease in ipairs(leases) do list_run(q, w, lease) end
end

local function lease_of(q, worker, record)
  local lease = decode_lease(call('HGET', q.prefix .. K.Leases .. worker, record))
  lease.record = record
  return lease
end

local function say_stop(q, worker, lease)
  local limit = (lease.stopping == 'cut' or lease.stopping == 'time-limit') and lease.duration or 0
  send(q, worker, struct.pack('<c1c8c16d', 'X', lease.record, lease.token, limit) .. lease.stopping)
end

local function say_lower(q, worker, lease)
  send(q, worker, struct.pack('<c1c8c16d', 'L', lease.record, lease.token, lease.duration) .. lease.lowered)
end

-- Tells the worker to stop a run; slot and units stay taken until that is confirmed, and the job waits for it.
local function stop_run(q, w, lease, id, code)
  if q.news then tell.run(q, 'X', lease.record) end
  unlist_run(q, w, lease)
  lease.stopping = code
  list_run(q, w, lease)
  call('HSET', w.leases, lease.record, encode_lease(lease))
  say_stop(q, w.name, lease)
  q.stops = q.stops + 1
  note_stop(q, lease.record, id)
end

-- Stops the run of a job; answers its lease. One that is being stopped already only gets another reason.
local function stop(q, r, code)
  local w, lease = worker_at(q, r.worker), lease_of(q, r.worker, r.key)
  if lease.stopping == '' then
    stop_run(q, w, lease, r.id, code)
  else
    lease.stopping = code
    call('HSET', w.leases, lease.record, encode_lease(lease))
    say_stop(q, w.name, lease)
  end
  return lease
end

-- Lets a run take only so long and hold no more than this class; one that is past that stops.
local function lower_run(q, w, lease, level, duration, code)
  local shorter = duration < lease.duration
  if shorter then lease.duration, lease.lowered = duration, code end
  if q.now - lease.start >= lease.duration then
    if q.news then tell.lowered(q, lease) end
    stop_run(q, w, lease, job_at(q, lease.record).id, code)
    return
  end
  unlist_run(q, w, lease)
  for k = level + 1, lease.level do q.used[k] = q.used[k] - 1 end
  lease.level = math.min(lease.level, level)
  if q.news then tell.lowered(q, lease) end
  if shorter then say_lower(q, w.name, lease) end
  list_run(q, w, lease)
  call('HSET', w.leases, lease.record, encode_lease(lease))
end
