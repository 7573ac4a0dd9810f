-- check_floor: looks at the workers and at what is counted for the whole queue, and repairs what it finds if asked.
-- args: now, dice, part, cursor ('0' to begin), page size, '1' to repair
-- answers: as check does
-- flags: allow-oom
-- What one worker's runs hold and where they should be listed, added to `floor`.
local function note_run(q, w, lease, floor)
  for k = 1, lease.level do floor.used[k] = (floor.used[k] or 0) + 1 end
  if lease.stopping ~= '' then
    floor.stops[lease.record] = true
    if not call('HGET', q.prefix .. K.Stopping, lease.record) then
      local r = job_at(q, lease.record)
      checking.fault(q, 'stops', 'the stop of ' .. checking.record(lease.record) .. ' is not noted', function()
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
    checking.fault(q, 'elastic', 'the run of ' .. checking.record(lease.record) .. ' is not listed as it should be', function()
      call('ZADD', key, score, member)
      if q.settings.borrow then q.cut_at = math.min(q.cut_at, lease.start + q.settings.caps[1]) end
    end)
  end
end

local function check_worker(q, name, floor)
  local w = worker_at(q, name)
  if not w then
    checking.fault(q, 'worker', 'worker ' .. name .. ' is listed and not described', function()
      call('ZREM', q.prefix .. K.Workers, name)
    end)
    return 0, 0
  end
  local running = 0
  for _, lease in ipairs(all_leases(w)) do
    local r = job_at(q, lease.record)
    if not SETTLED[lease.stopping] and (not r or r.phase ~= 'R' or r.worker ~= name) then
      checking.fault(q, 'lease', 'worker ' .. name .. ' holds ' .. checking.record(lease.record) .. ', which does not run there', function()
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
    checking.fault(q, 'slots', 'worker ' .. name .. ' should have ' .. free .. ' free slots', function()
      call('ZADD', q.prefix .. K.Free .. w.crew, free, name)
    end)
  end
  return free, running
end

-- The counts per state: one by one where the jobs are few enough to be counted again, else as sums.
local function check_counts(q, running)
  local said, ended, all = q.counts, (q.counts[3] or 0) + (q.counts[4] or 0), 0
  for _, count in ipairs(said) do all = all + count end
  local aside = said[2] or 0
  local right = ended == call('ZCARD', q.prefix .. K.Ended) + call('ZCARD', q.prefix .. K.Kept)
    and aside == call('ZCARD', q.prefix .. K.Held) and all - ended - aside == q.waiting + running
  local found = checking.recount(q)
  local counts = found and found.counts
  if counts then
    right = true
    for i = 1, 4 + #q.settings.stages do
      counts[i] = counts[i] or 0
      right = right and counts[i] == (said[i] or 0)
    end
  end
  if not right then
    checking.fault(q, 'counts', 'the counts per state are not those of the jobs that are kept', counts and function()
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
          checking.fault(q, 'elastic', 'a run is listed to give way or as stopping, and is not', function()
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
        checking.fault(q, 'stops', 'a stop of ' .. checking.record(field) .. ' is noted, and it does not run', function()
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
      checking.fault(q, 'levels', count .. ' ' .. name .. ' are counted, and there are ' .. floor[name], function()
        q[name] = floor[name]
      end)
    end
  end
  for k = 1, #q.used do
    if q.used[k] ~= (floor.used[k] or 0) then
      checking.fault(q, 'levels', 'level ' .. k .. ' is said to have ' .. q.used[k] .. ' running jobs, and has '
        .. (floor.used[k] or 0), function() q.used[k] = floor.used[k] or 0 end)
    end
  end
end

-- Workers, and what is counted for the whole queue: all in one step, since it is short.
local function totals(q)
  local free, running, standing = 0, 0, 0
  local floor = { used = {}, stops = {}, listed = {}, slots = 0, halts = 0, elastics = 0 }
  local names = call('ZRANGE', q.prefix .. K.Workers, 0, -1)
  for _, name in ipairs(names) do
    local its_free, its_running = check_worker(q, name, floor)
    free, running = free + its_free, running + its_running
  end
  for _, name in ipairs(call('HKEYS', q.prefix .. K.WorkerInfo)) do
    if not call('ZSCORE', q.prefix .. K.Workers, name) then
      checking.fault(q, 'worker', 'worker ' .. name .. ' would never be given up', function()
        call('ZADD', q.prefix .. K.Workers, q.now, name)
        q.lease_at = q.now
      end)
    end
  end
  for crew in pairs(q.crews.list) do
    for _, name in ipairs(call('ZRANGE', q.prefix .. K.Free .. crew, 0, -1)) do
      local w = worker_at(q, name)
      if not w or w.crew ~= crew then
        checking.fault(q, 'slots', 'worker ' .. name .. ' has free slots and is not there', function()
          call('ZREM', q.prefix .. K.Free .. crew, name)
        end)
      end
    end
  end
  if q.free ~= free then
    checking.fault(q, 'slots', q.free .. ' slots are said to be free, and ' .. free .. ' are', function() q.free = free end)
  end
  for _, lane in ipairs(lanes(q)) do standing = standing + call('ZCARD', lane.key) end
  if q.waiting ~= standing then
    checking.fault(q, 'waiting', q.waiting .. ' jobs are said to wait, and there are ' .. standing .. ' places', function()
      q.waiting = standing
    end)
  end
  check_floor(q, floor)
  check_counts(q, running)
  return '', #names
end

verb.check_floor = function(keys, args)
  return checking.page({ totals = totals }, keys, args)
end
