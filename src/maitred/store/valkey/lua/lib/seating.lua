-- Who fits: a walk along the line that seats whoever fits into what is free. It goes through the lanes by band and
-- priority, merges those of one group by their heads, sets the classes aside whose level is full, and a lane when
-- nobody who serves its need has a free slot, so its cost does not grow with the number waiting.
-- gives: room_for, crew_room, pick, free_units, first_full, first_beyond, take_units, set_aside, set_lacking_aside, peek, start_class, start_job, write_leases, seat_all

-- The caller's free slots are known; where it has all that are free, nobody else is looked at.
local function room_for(q, caller)
  local room = { mine = false, all_mine = false }
  if caller then
    room.mine = { name = caller.name, free = caller.said, crew = caller.crew, starts = {}, caller = caller }
    room.all_mine = q.free == caller.said
  end
  return room
end

-- Free workers of a crew, as far as one cycle can use them.
local function crew_room(q, room, crew)
  local list = room[crew]
  if not list then
    list = {}
    if room.mine and room.mine.crew == crew then list[1] = room.mine end
    if not room.all_mine then
      local flat = call('ZREVRANGEBYSCORE', q.prefix .. K.Free .. crew, '+inf', 1, 'WITHSCORES',
        'LIMIT', 0, C.STARTS_PER_CYCLE)
      for i = 1, #flat, 2 do
        if not (room.mine and flat[i] == room.mine.name) then
          list[#list + 1] = { name = flat[i], free = tonumber(flat[i + 1]), crew = crew, starts = {} }
        end
      end
    end
    room[crew] = list
  end
  return list
end

-- Chooses who runs a job with this need: the caller if it can, else the one with most free slots.
local function pick(q, room, need)
  local best
  for _, crew in ipairs(q.crews.by_need[need] or {}) do
    for _, worker in ipairs(crew_room(q, room, crew)) do
      if worker.free > 0 then
        if worker == room.mine then return worker end
        if not best or worker.free > best.free
          or (worker.free == best.free and by_bytes(best.name, worker.name)) then
          best = worker
        end
      end
    end
  end
  return best
end

-- The free units of each level, and the first level whose classes are set aside.
local function free_units(q)
  local units, limits = {}, limits_of(q)
  for k = 2, #limits do units[k] = limits[k] - q.used[k] end
  units.aside = #limits + 1
  return units
end

-- The first full level that a job of this class needs.
local function first_full(units, level)
  for k = 2, level do
    if units[k] <= 0 then return k end
  end
end

local function take_units(units, level)
  for k = 2, level do units[k] = units[k] - 1 end
end

local function set_aside(group, level)
  for _, lane in ipairs(group) do
    if lane.level >= level then lane.aside = true end
  end
end

-- The first that lacks space holds back all later ones that do.
local function set_lacking_aside(group)
  for _, lane in ipairs(group) do
    if lane.lacking then lane.aside = true end
  end
end

-- The class that a job starts in; under `squeeze` an elastic one takes the longest with room.
local function start_class(q, units, r)
  if q.settings.borrow or not has(r, ELASTIC) then return r.level end
  local caps = q.settings.caps
  local longest = (first_full(units, #caps) or #caps + 1) - 1
  if r.duration > 0 then
    for k = 1, longest do
      if r.duration <= caps[k] then return k end
    end
  end
  return longest
end

local OWN_PLACE = string.byte('J')

-- The job that a place would serve after `before` others of the same stack were taken.
local function peek(q, lane, member, taken)
  local whose = string.sub(member, 18)
  if string.byte(member, 17) == OWN_PLACE then return job_at(q, whose) end
  local stack = keys_of(q, lane.name).stack .. whose
  local before = taken[stack] or 0
  taken[stack] = before + 1
  local record = call('ZRANGE', stack, before, before)[1]
  return record and job_at(q, record)
end

-- The first level that a job of this class needs and that stays full whoever gives way.
local function first_beyond(units, yields, level)
  for k = 2, level do
    if units[k] <= 0 and units[k] + (yields[k] or 0) <= 0 then return k end
  end
end

-- What keeps the job of this place from starting though there is room: the reason of a hold, or that it would not fit
-- into all the space there is; `true` if it has to wait for space, as all who lack it then do.
local function kept_back(q, lane, r, units)
  if not r or (r.expires > 0 and r.expires <= q.now) then return nil end
  local reason = hold_reason(q, r)
  if reason or not lane.lacking then return reason end
  local space, all = extra_of(q, r).space, q.settings.space
  if over_budget(q, r) then return 'space' end
  if all > 0 and space > all - q.space_used - units.space then return true end
  units.space = units.space + space
end

-- Merges the heads of some lanes and decides the starts; answers how many more may start. A patient walk ends
-- before a place for which an elastic run has to give up units first.
local function walk(q, group, room, units, left, due_only, starts)
  for _, lane in ipairs(group) do
    lane.heads = call('ZRANGE', lane.key, lane.taken, lane.taken + left - 1)
    lane.at = 1
  end
  set_aside(group, units.aside)
  if units.no_space then set_lacking_aside(group) end
  local squeezed = not q.settings.borrow and #q.settings.caps > 1
  while left > 0 do
    local best, first, second = first_head(group)
    if not best or (due_only and best.band >= SCHEDULED and first > q.now) then return left end
    local full = first_full(units, best.level)
    local beyond = full and first_beyond(units, units.yields, best.level)
    local worker = not beyond and pick(q, room, best.need)
    if beyond then
      units.aside = beyond
      set_aside(group, beyond)
    elseif worker and full then
      units.early = true
      return 0
    elseif worker then
      local member, level = best.heads[best.at], best.level
      local r, kept
      if q.flags > 0 or best.lacking or (squeezed and level == 1) then
        r = peek(q, best, member, room)
        kept = (q.flags > 0 or best.lacking) and kept_back(q, best, r, units)
      end
      if kept == true then
        units.no_space = true
        set_lacking_aside(group)
      else
        if not kept then
          if squeezed and level == 1 then
            level = r and start_class(q, units, r) or 1
            if r and has(r, ELASTIC) and units.patient then
              for k = 2, level do units.yields[k] = units.yields[k] + 1 end
            end
          end
          take_units(units, level)
          worker.free = worker.free - 1
        end
        starts[#starts + 1] = { lane = best, member = member, worker = not kept and worker, kept = kept, level = level,
          release = first, arrival = second, record = false, pool = false }
        best.at, best.taken, best.last, left = best.at + 1, best.taken + 1, member, left - 1
      end
    else
      best.aside = true
    end
  end
  return left
end

-- Takes the decided places out of line and finds the job of each.
local function seat(q, starts, touched)
  for _, lane in ipairs(touched) do
    if lane.taken > 0 then
      call('ZREMRANGEBYRANK', lane.key, 0, lane.taken - 1)
      if q.news then tell.place(q, 'T', lane.name, string.sub(lane.last, 1, 16)) end
    end
  end
  local pools, records = {}, {}
  for _, start in ipairs(starts) do
    local whose = string.sub(start.member, 18)
    if string.byte(start.member, 17) == OWN_PLACE then
      start.record = whose
    else
      local keys = keys_of(q, start.lane.name)
      local stack = keys.stack .. whose
      local pool = pools[stack]
      if pool then
        pool.last = pool.last + 1
      else
        pool = { nonces = keys.nonces .. whose, last = 0, at = -1, jobs = false }
        pools[stack] = pool
      end
      start.pool = pool
    end
  end
  for stack, pool in pairs(pools) do
    pool.jobs = call('ZPOPMIN', stack, pool.last + 1)
    call('ZREMRANGEBYRANK', pool.nonces, 0, pool.last)
  end
  for i, start in ipairs(starts) do
    if start.pool then
      start.pool.at = start.pool.at + 2
      start.record = start.pool.jobs[start.pool.at]
    end
    records[i] = start.record or ''
  end
  return records
end

-- How a job runs in this class: its kind, and the time granted to it.
local function terms(q, r, level)
  local caps = q.settings.caps
  if r.band == INTERACTIVE then return INTERACTIVE_RUN, r.duration end
  if #caps == 1 or not has(r, ELASTIC) then
    return SPECIFIC_RUN, r.duration > 0 and r.duration or caps[r.level]
  end
  local cap = q.settings.borrow and caps[#caps] or caps[level]
  return ELASTIC_RUN, r.duration > 0 and math.min(r.duration, cap) or cap
end

-- Leases one job to a worker and answers what is sent to it.
local function start_job(q, r, worker, level, body, data)
  counted(q, r, -1)
  r.phase, r.worker, r.attempt = 'R', worker.name, r.attempt + 1
  r.stage = math.max(r.stage, 1)
  counted(q, r, 1)
  if r.flags >= LACKING and has(r, LACKING) then
    mark(r, LACKING, false)
    mark(r, PROVISIONED, true)
    q.space_used = q.space_used + extra_of(q, r).space
  end
  if r.flags >= EXTRA and extra_of(q, r).progress ~= '' then change_extra(q, r).progress = '' end
  touch(q, r)
  local kind, duration = terms(q, r, level)
  local list, used = worker.starts, q.used
  local count = #list
  list[count + 1] = r.key
  list[count + 2] = struct.pack(PADDED_LEASE, q.dice, q.now, next_seq(q), 0, level, kind, duration, 0, '', 0, '')
  for k = 1, level do used[k] = used[k] + 1 end
  if kind == INTERACTIVE_RUN then
    q.halts = q.halts + 1
    add(q, yielding(q, worker.crew, 0), q.now_text, r.key .. worker.name)
  elseif kind == ELASTIC_RUN and (level > 1 or q.settings.borrow) then
    q.elastics = q.elastics + 1
    add(q, yielding(q, worker.crew, level), q.now_text, r.key .. worker.name)
    q.cut_at = math.min(q.cut_at, q.now + q.settings.caps[1])
  end
  if q.news then tell.start(q, r, level, kind, duration) end
  notices.add(q, r, 's', '')
  return encode_start(r, extra_of(q, r), q.dice, q.now, duration, body, data or '')
end

local function write_leases(q, worker)
  local count = #worker.starts / 2
  if count == 0 then return end
  write_hash(q.prefix .. K.Leases .. worker.name, worker.starts)
  worker.starts = {}
  local w = worker.caller
  if w then
    w.busy = w.busy + count
    settle(q, w)
  else
    call('ZADD', q.prefix .. K.Free .. worker.crew, worker.free, worker.name)
    q.free = q.free - count
  end
end

-- Marks the job as out of line, at the place that it took.
local function take_place(q, r, start)
  q.waiting = q.waiting - 1
  if is_own(r) then call('ZREM', q.prefix .. K.Own .. r.submitter, start.record) end
  if r.expires > 0 then call('ZREM', q.prefix .. K.Expiry, start.record) end
  uncount_exempt(q, r)
  set_own(r, false)
  if r.band >= SCHEDULED then r.release, r.arrival = start.release, start.arrival end
end

local function start_all(q, starts, mine, touched)
  local records, again = seat(q, starts, touched), false
  local bodies, data = load_whole(q, records)
  for i, start in ipairs(starts) do
    local r = q.jobs[records[i]]
    if r then take_place(q, r, start) end
    if start.kept then
      -- It was counted as one that takes a slot, which is still free.
      again = true
      if start.kept == 'space' then end_for_space(q, r) else set_held(q, r, start.kept) end
    elseif r and not (r.expires > 0 and r.expires <= q.now) then
      local message = start_job(q, r, start.worker, start.level, bodies[i], data[i])
      if start.worker.caller then
        mine[#mine + 1] = message
      else
        send(q, start.worker.name, message)
      end
    else
      if r then expire(q, r) end
      start.worker.free = start.worker.free + 1
      again = true
    end
  end
  return again
end

-- Seats whoever fits into what is free. Answers whether some could not be seated after all, and whether it ended
-- before a place for which somebody has to give way first. Where jobs in line have expired and are still to be
-- ended, one place is taken at a time: what an expired one would have held is for the next.
local function seat_all(q, caller, mine, patient)
  local all, room, units, starts = lanes(q), room_for(q, caller), free_units(q), {}
  units.patient = patient and not q.settings.borrow
  units.yields = units.patient and yields_of(q) or NOTHING
  units.space, units.no_space = 0, false
  local singly = q.expiry_at <= q.now
  local left = singly and 1 or math.min(q.left, q.free)
  for _, group in ipairs(groups(all)) do
    if left > 0 then left = walk(q, group, room, units, left, true, starts) end
  end
  if q.settings.eager and left > 0 then walk(q, pooled_of(all), room, units, left, false, starts) end
  if #starts == 0 then return false, units.early end
  local again = start_all(q, starts, mine, all) or singly
  for crew in pairs(q.crews.list) do
    for _, worker in ipairs(room[crew] or {}) do write_leases(q, worker) end
  end
  q.left = q.left - #starts
  return again, units.early
end
