-- The Floor: workers, their slots and their leases. `Workers` has each worker's lease end, `WorkerInfo` its
-- slots and crew, `Free.<crew>` the free slots of workers that serve the same, `Leases.<worker>` what it holds.

local INFO = '<HBc0'

local function free_of(w)
  return w.draining and 0 or math.max(0, w.slots - w.busy)
end

-- A worker; `busy` is the number of its leases, `said` the free slots that the floor counts for it.
local function worker_at(q, name)
  local bytes = call('HGET', q.prefix .. K.WorkerInfo, name)
  if not bytes then return nil end
  local leases = q.prefix .. K.Leases .. name
  local w = { name = name, slots = (struct.unpack('<H', bytes)), draining = string.byte(bytes, 3) == 1,
    crew = string.sub(bytes, 4), leases = leases, busy = call('HLEN', leases), said = 0, listed = true, gone = false }
  w.said = free_of(w)
  return w
end

local function save_worker(q, w)
  call('HSET', q.prefix .. K.WorkerInfo, w.name,
    struct.pack(INFO, w.slots, w.draining and 1 or 0, w.crew))
end

-- Counts the worker's free slots as they are now; `listed` tells whether `Free` says so too.
local function settle(q, w)
  local free = free_of(w)
  if free ~= w.said then w.listed = false end
  q.free = q.free - w.said + free
  w.said = free
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
  settle(q, w)
  list_free(q, w)
  call('ZREM', q.prefix .. K.Workers, w.name)
  call('HDEL', q.prefix .. K.WorkerInfo, w.name)
  call('DEL', q.prefix .. K.Inbox .. w.name, w.leases)
  q.sent[w.name] = nil
end

local function extend(q, w)
  local lease_end = q.now + q.settings.lease
  call('ZADD', q.prefix .. K.Workers, lease_end, w.name)
  if lease_end < q.lease_at then q.lease_at = lease_end end
end

-- Gives slots back, once; a draining worker that holds nothing more is gone.
local function unhand(q, w, records)
  if #records > 0 then w.busy = w.busy - take_out('HDEL', w.leases, records) end
  if w.draining and w.busy == 0 then
    forget_worker(q, w)
  else
    settle(q, w)
  end
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

-- Tells the worker that runs the job to stop it; its slot stays taken until that is confirmed.
local function stop(q, r, code)
  local key, record = q.prefix .. K.Leases .. r.worker, r.key
  local lease = decode_lease(call('HGET', key, record))
  lease.stopping = code
  call('HSET', key, record, encode_lease(lease))
  send(q, r.worker, 'X' .. record .. lease.token .. code)
  return lease
end
