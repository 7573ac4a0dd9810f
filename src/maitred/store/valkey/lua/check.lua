-- check: looks at one page of the queue for broken invariants, and repairs what it finds if asked. Every rule
-- is local to what one page reads, so that pages may be looked at one after another on a live queue.
-- args: now, dice, part (see PARTS), cursor ('0' to begin), page size, '1' to repair
-- answers: {next cursor ('' at the end of the part), how many were looked at, {code, text, repaired, …},
--   {cursors of keys that are too long for this page}}
-- flags: allow-oom
local function fault(q, code, text, repair)
  local list = q.faults
  if q.repair and repair then repair() end
  list[#list + 1] = code
  list[#list + 1] = text
  list[#list + 1] = q.repair and repair and 1 or 0
end

local function whole(number)
  return string.format('%.0f', number)
end

local function named(r)
  return 'job ' .. r.id .. ' (version ' .. r.version .. ')'
end

local function pool_of(r)
  return lane_of(r) .. '/' .. r.submitter
end

-- The order key of a place, for the pool's lane and one of its nonces.
local function pool_member(lane, submitter, release, arrival)
  return order_key(tonumber(string.sub(lane, 1, 1)), release, arrival) .. 'S' .. submitter
end

local function list_again(q, lane)
  if not q.lanes.by_name[lane] then list_lane(q, lane) end
end

local function check_waiting_job(q, r, record)
  local lane = lane_of(r)
  if is_own(r) then
    if not call('ZSCORE', q.prefix .. K.Reservations .. lane, own_member(r)) then
      fault(q, 'place', named(r) .. ' has lost its own place', function()
        call('ZADD', q.prefix .. K.Reservations .. lane, 0, own_member(r))
        list_again(q, lane)
      end)
    end
    if not call('ZSCORE', q.prefix .. K.Own .. r.submitter, record) then
      fault(q, 'own', named(r) .. " is not among its submitter's own places", function()
        call('ZADD', q.prefix .. K.Own .. r.submitter, r.arrival, record)
      end)
    end
  elseif not call('ZSCORE', q.prefix .. K.SubmitterInfo .. pool_of(r), record) then
    fault(q, 'place', named(r) .. " waits and is in nobody's stack", function()
      set_own(r, true)
      call('ZADD', q.prefix .. K.Reservations .. lane, 0, own_member(r))
      call('ZADD', q.prefix .. K.Own .. r.submitter, r.arrival, record)
      list_again(q, lane)
      touch(q, r)
    end)
  end
  if r.expires > 0 and not call('ZSCORE', q.prefix .. K.Expiry, record) then
    fault(q, 'expiry', named(r) .. ' would not expire', function()
      call('ZADD', q.prefix .. K.Expiry, r.expires, record)
      q.expiry_at = math.min(q.expiry_at, r.expires)
    end)
  end
end

local function check_running_job(q, r, record)
  local lease = call('HGET', q.prefix .. K.Leases .. r.worker, record)
  local known = call('HEXISTS', q.prefix .. K.WorkerInfo, r.worker) == 1
  if not lease or not known or SETTLED[decode_lease(lease).stopping] then
    fault(q, 'state', named(r) .. ' is said to run and has no lease', function()
      r.phase, r.band, r.worker = 'W', FRONT, ''
      r.release, r.arrival = q.now, next_seq(q)
      set_own(r, true)
      call('ZADD', q.prefix .. K.Reservations .. lane_of(r), 0, own_member(r))
      call('ZADD', q.prefix .. K.Own .. r.submitter, r.arrival, record)
      list_again(q, lane_of(r))
      touch(q, r)
    end)
  end
end

local function scan(command, key, cursor, size)
  local got = call(command, key, cursor, 'COUNT', size)
  return got[1], got[2]
end

local function after_scan(cursor)
  return cursor == '0' and '' or cursor
end

-- Counting again blocks the store for some microseconds per job.
local MOST_RECOUNTED = 5000
local PARTS = {}

-- The jobs of a batch are kept as long as the batch.
local function ended_list(q, r)
  return extra_of(q, r).batch == '' and K.Ended or K.Kept
end

local function check_job(q, record, bytes)
  local r = decode_job(record, bytes)
  q.jobs[record] = r
  if call('HEXISTS', q.prefix .. K.Jobs, 'b' .. record) == 0 then
    fault(q, 'body', named(r) .. ' has lost its configuration')
  end
  local newest = call('HGET', q.prefix .. K.Ids, r.id)
  if not newest or number8(newest) < r.record then
    fault(q, 'ids', named(r) .. ' is not found by its id', function()
      call('HSET', q.prefix .. K.Ids, r.id, record)
    end)
  end
  if r.phase == 'W' then
    check_waiting_job(q, r, record)
  elseif r.phase == 'R' then
    check_running_job(q, r, record)
  elseif r.phase == 'E' and not call('ZSCORE', q.prefix .. ended_list(q, r), record) then
    fault(q, 'ended', named(r) .. ' ended and would never be swept', function()
      call('ZADD', q.prefix .. ended_list(q, r), r.ended, record)
    end)
  end
end

PARTS.jobs = function(q, cursor, size)
  local next_cursor, flat = scan('HSCAN', q.prefix .. K.Jobs, cursor, size)
  for i = 1, #flat, 2 do
    if #flat[i] == 8 then check_job(q, flat[i], flat[i + 1]) end
  end
  return after_scan(next_cursor), #flat / 4
end

-- Looks at all keys of one kind, page by page. Of a key that does not fit into the page the caller gets a cursor
-- of its own, `@rank key`.
local function each_pool(q, name, cursor, size, look)
  local rank, key = string.match(cursor, '^@(%d+) (.*)$')
  if rank then
    local first = tonumber(rank)
    local members = call('ZRANGE', key, first, first + size - 1)
    look(key, members)
    return #members == size and '@' .. (first + size) .. ' ' .. key or '', #members
  end
  local got, seen = call('SCAN', cursor, 'MATCH', q.prefix .. name .. '*', 'COUNT', size), 0
  for _, found in ipairs(got[2]) do
    local count = call('ZCARD', found)
    if seen + count <= size then
      look(found, call('ZRANGE', found, 0, -1))
      seen = seen + count
    else
      q.long[#q.long + 1] = '@0 ' .. found
    end
  end
  return after_scan(got[1]), seen
end

-- Makes as many places as jobs: too few get one now, too many lose the last.
local function level(q, lane, submitter)
  local owner = lane .. '/' .. submitter
  local stack, nonces = q.prefix .. K.SubmitterInfo .. owner, q.prefix .. K.Nonces .. owner
  local surplus = call('ZCARD', nonces) - call('ZCARD', stack)
  while surplus > 0 do
    local last = call('ZPOPMAX', nonces)
    call('ZREM', q.prefix .. K.Reservations .. lane,
      pool_member(lane, submitter, tonumber(last[2]), number8(last[1])))
    surplus = surplus - 1
  end
  while surplus < 0 do
    local arrival = next_seq(q)
    call('ZADD', nonces, q.now, key8(arrival))
    call('ZADD', q.prefix .. K.Reservations .. lane, 0, pool_member(lane, submitter, q.now, arrival))
    list_again(q, lane)
    surplus = surplus + 1
  end
end

PARTS.stacks = function(q, cursor, size)
  local name = q.prefix .. K.SubmitterInfo
  return each_pool(q, K.SubmitterInfo, cursor, size, function(key, members)
    local lane, submitter = string.match(string.sub(key, #name + 1), '^([^/]*)/(.*)$')
    for _, record in ipairs(members) do
      local r = job_at(q, record)
      if not r or r.phase ~= 'W' or is_own(r) or pool_of(r) ~= lane .. '/' .. submitter then
        fault(q, 'stack', 'record ' .. whole(number8(record)) .. ' does not belong on the stack of ' .. submitter, function()
          call('ZREM', key, record)
        end)
      end
    end
    local nonces = call('ZCARD', q.prefix .. K.Nonces .. lane .. '/' .. submitter)
    if nonces ~= call('ZCARD', key) then
      fault(q, 'nonces', submitter .. ' has ' .. call('ZCARD', key) .. ' jobs and ' .. nonces .. ' places', function()
        level(q, lane, submitter)
      end)
    end
  end)
end

PARTS.nonces = function(q, cursor, size)
  local name = q.prefix .. K.Nonces
  return each_pool(q, K.Nonces, cursor, size, function(key, members)
    local lane, submitter = string.match(string.sub(key, #name + 1), '^([^/]*)/(.*)$')
    for _, nonce in ipairs(members) do
      local release = tonumber(call('ZSCORE', key, nonce))
      local member = pool_member(lane, submitter, release, number8(nonce))
      if not call('ZSCORE', q.prefix .. K.Reservations .. lane, member) then
        fault(q, 'nonces', 'a nonce of ' .. submitter .. ' has no place', function()
          call('ZADD', q.prefix .. K.Reservations .. lane, 0, member)
          list_again(q, lane)
        end)
      end
    end
    if call('ZCARD', q.prefix .. K.SubmitterInfo .. lane .. '/' .. submitter) == 0 then
      fault(q, 'nonces', submitter .. ' has places and no job', function() level(q, lane, submitter) end)
    end
  end)
end

local function check_place(q, lane, key, member)
  local whose = string.sub(member, 18)
  if string.sub(member, 17, 17) == 'J' then
    local r = job_at(q, whose)
    if not r or r.phase ~= 'W' or not is_own(r) or lane_of(r) ~= lane or own_member(r) ~= member then
      fault(q, 'place', 'a place of record ' .. whole(number8(whose)) .. ' serves no job', function()
        call('ZREM', key, member)
      end)
    end
  elseif not call('ZSCORE', q.prefix .. K.Nonces .. lane .. '/' .. whose, string.sub(member, 9, 16)) then
    fault(q, 'place', 'a place of ' .. whose .. ' has no nonce', function() call('ZREM', key, member) end)
  end
end

PARTS.places = function(q, cursor, size)
  local name = q.prefix .. K.Reservations
  return each_pool(q, K.Reservations, cursor, size, function(key, members)
    local lane = string.sub(key, #name + 1)
    if not q.lanes.by_name[lane] then
      fault(q, 'lanes', 'lane ' .. lane .. ' is not listed', function() list_again(q, lane) end)
    end
    for _, member in ipairs(members) do check_place(q, lane, key, member) end
  end)
end

PARTS.own = function(q, cursor, size)
  local name = q.prefix .. K.Own
  return each_pool(q, K.Own, cursor, size, function(key, members)
    local submitter = string.sub(key, #name + 1)
    for _, record in ipairs(members) do
      local r = job_at(q, record)
      if not r or r.phase ~= 'W' or not is_own(r) or r.submitter ~= submitter then
        fault(q, 'own', 'record ' .. whole(number8(record)) .. ' has no place of its own', function()
          call('ZREM', key, record)
        end)
      end
    end
  end)
end

PARTS.ids = function(q, cursor, size)
  local next_cursor, flat = scan('HSCAN', q.prefix .. K.Ids, cursor, size)
  for i = 1, #flat, 2 do
    local r = job_at(q, flat[i + 1])
    if not r or r.id ~= flat[i] then
      fault(q, 'ids', 'id ' .. flat[i] .. ' leads to a record that is not its own', function()
        call('HDEL', q.prefix .. K.Ids, flat[i])
      end)
    end
  end
  return after_scan(next_cursor), #flat / 2
end

local function check_index(name, code, fits)
  return function(q, cursor, size)
    local next_cursor, flat = scan('ZSCAN', q.prefix .. name, cursor, size)
    for i = 1, #flat, 2 do
      local r = job_at(q, flat[i])
      if not r or not fits(r) then
        fault(q, code, 'record ' .. whole(number8(flat[i])) .. ' is listed in ' .. name .. ' and does not belong there', function()
          call('ZREM', q.prefix .. name, flat[i])
        end)
      end
    end
    return after_scan(next_cursor), #flat / 2
  end
end

PARTS.ended = check_index(K.Ended, 'ended', function(r) return r.phase == 'E' end)
PARTS.expiry = check_index(K.Expiry, 'expiry', function(r) return r.phase == 'W' and r.expires > 0 end)

-- What one worker's runs hold and where they should be listed, added to `floor`.
local function note_run(q, w, lease, floor)
  for k = 1, lease.level do floor.used[k] = (floor.used[k] or 0) + 1 end
  if lease.stopping ~= '' then
    floor.stops[lease.record] = true
    if not call('HGET', q.prefix .. K.Stopping, lease.record) then
      local r = job_at(q, lease.record)
      fault(q, 'stops', 'the stop of record ' .. whole(number8(lease.record)) .. ' is not noted', function()
        note_stop(q, lease.record, r and r.id or '')
      end)
    end
  end
  if w.draining then return end
  local key, score = listing(q, w.crew, lease, 0)
  if not key then return end
  local member = lease.record .. w.name
  floor.listed[key] = floor.listed[key] or {}
  floor.listed[key][member] = true
  if lease.stopping == '' then
    local kind = lease.kind == INTERACTIVE_RUN and 'halts' or 'elastics'
    floor[kind] = floor[kind] + 1
  end
  if tonumber(call('ZSCORE', key, member)) ~= score then
    fault(q, 'elastic', 'the run of record ' .. whole(number8(lease.record)) .. ' is not listed as it should be', function()
      call('ZADD', key, score, member)
      if q.settings.borrow then q.cut_at = math.min(q.cut_at, lease.start + q.settings.caps[1]) end
    end)
  end
end

local function check_worker(q, name, floor)
  local w = worker_at(q, name)
  if not w then
    fault(q, 'worker', 'worker ' .. name .. ' is listed and not described', function()
      call('ZREM', q.prefix .. K.Workers, name)
    end)
    return 0, 0
  end
  local running = 0
  for _, lease in ipairs(all_leases(w)) do
    local r = job_at(q, lease.record)
    if not SETTLED[lease.stopping] and (not r or r.phase ~= 'R' or r.worker ~= name) then
      fault(q, 'lease', 'worker ' .. name .. ' holds record ' .. whole(number8(lease.record)) .. ', which does not run there', function()
        unhand(q, w, { lease })
      end)
    else
      note_run(q, w, lease, floor)
      if not SETTLED[lease.stopping] then running = running + 1 end
    end
  end
  floor.slots = floor.slots + live_of(w)
  local free = free_of(w)
  if (tonumber(call('ZSCORE', q.prefix .. K.Free .. w.crew, name)) or 0) ~= free then
    fault(q, 'slots', 'worker ' .. name .. ' should have ' .. free .. ' free slots', function()
      call('ZADD', q.prefix .. K.Free .. w.crew, free, name)
    end)
  end
  return free, running
end

-- The counts per state: one by one where the jobs are few enough to be counted again, else as sums.
local function check_counts(q, running)
  local said, ended, all = q.counts, (q.counts[3] or 0) + (q.counts[4] or 0), 0
  for _, count in ipairs(said) do all = all + count end
  local right = ended == call('ZCARD', q.prefix .. K.Ended) and all - ended - (said[2] or 0) == q.waiting + running
  local counts
  if call('HLEN', q.prefix .. K.Jobs) <= 2 * MOST_RECOUNTED then
    q.counts = {}
    local flat = call('HGETALL', q.prefix .. K.Jobs)
    for i = 1, #flat, 2 do
      if #flat[i] == 8 then counted(q, decode_job(flat[i], flat[i + 1]), 1) end
    end
    counts, q.counts, right = q.counts, said, true
    for i = 1, 4 + #q.settings.stages do
      counts[i] = counts[i] or 0
      right = right and counts[i] == (said[i] or 0)
    end
  end
  if not right then
    fault(q, 'counts', 'the counts per state are not those of the jobs that are kept', counts and function()
      q.counts = counts
    end)
  end
end

-- What is counted and listed of the floor is what the leases say.
local function check_floor(q, floor)
  for crew in pairs(q.crews.list) do
    local keys = { q.prefix .. K.Credit .. crew }
    for k = 0, #q.settings.caps do keys[#keys + 1] = yielding(q, crew, k) end
    for _, key in ipairs(keys) do
      for _, member in ipairs(call('ZRANGE', key, 0, -1)) do
        if not (floor.listed[key] or {})[member] then
          fault(q, 'elastic', 'a run is listed to give way or as stopping, and is not', function()
            call('ZREM', key, member)
          end)
        end
      end
    end
  end
  local stops = 0
  for _, field in ipairs(call('HKEYS', q.prefix .. K.Stopping)) do
    if string.sub(field, 1, 1) ~= 'i' then
      if floor.stops[field] then
        stops = stops + 1
      else
        fault(q, 'stops', 'a stop of record ' .. whole(number8(field)) .. ' is noted, and it does not run', function()
          stop_confirmed(q, field)
          q.stops = q.stops + 1
        end)
      end
    end
  end
  local said = { slots = q.slots, stops = q.stops, halts = q.halts, elastics = q.elastics }
  floor.stops = stops
  for name, count in pairs(said) do
    if count ~= floor[name] then
      fault(q, 'levels', count .. ' ' .. name .. ' are counted, and there are ' .. floor[name], function()
        q[name] = floor[name]
      end)
    end
  end
  for k = 1, #q.used do
    if q.used[k] ~= (floor.used[k] or 0) then
      fault(q, 'levels', 'level ' .. k .. ' is said to have ' .. q.used[k] .. ' running jobs, and has '
        .. (floor.used[k] or 0), function() q.used[k] = floor.used[k] or 0 end)
    end
  end
end

-- Workers, and what is counted for the whole queue: all in one step, since it is short.
PARTS.totals = function(q)
  local free, running, standing = 0, 0, 0
  local floor = { used = {}, stops = {}, listed = {}, slots = 0, halts = 0, elastics = 0 }
  local names = call('ZRANGE', q.prefix .. K.Workers, 0, -1)
  for _, name in ipairs(names) do
    local its_free, its_running = check_worker(q, name, floor)
    free, running = free + its_free, running + its_running
  end
  for _, name in ipairs(call('HKEYS', q.prefix .. K.WorkerInfo)) do
    if not call('ZSCORE', q.prefix .. K.Workers, name) then
      fault(q, 'worker', 'worker ' .. name .. ' would never be given up', function()
        call('ZADD', q.prefix .. K.Workers, q.now, name)
        q.lease_at = q.now
      end)
    end
  end
  for crew in pairs(q.crews.list) do
    for _, name in ipairs(call('ZRANGE', q.prefix .. K.Free .. crew, 0, -1)) do
      local w = worker_at(q, name)
      if not w or w.crew ~= crew then
        fault(q, 'slots', 'worker ' .. name .. ' has free slots and is not there', function()
          call('ZREM', q.prefix .. K.Free .. crew, name)
        end)
      end
    end
  end
  if q.free ~= free then
    fault(q, 'slots', q.free .. ' slots are said to be free, and ' .. free .. ' are', function() q.free = free end)
  end
  for _, lane in ipairs(lanes(q)) do standing = standing + call('ZCARD', lane.key) end
  if q.waiting ~= standing then
    fault(q, 'waiting', q.waiting .. ' jobs are said to wait, and there are ' .. standing .. ' places', function()
      q.waiting = standing
    end)
  end
  check_floor(q, floor)
  check_counts(q, running)
  return '', #names
end

verb.check = function(keys, args)
  local q, refused = open(keys, args)
  if not q then return refused end
  q.faults, q.long, q.repair = {}, {}, args[6] == '1'
  local cursor, seen = PARTS[args[3]](q, args[4], tonumber(args[5]))
  if q.repair then finish_verb(q) end
  return { cursor, seen, q.faults, q.long }
end
