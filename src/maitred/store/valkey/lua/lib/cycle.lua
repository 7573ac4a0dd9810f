-- The cycle: seats whoever can be seated, in line order. It walks the lanes by band and priority, merges those
-- of one group by their heads, and sets a lane aside when nobody who serves its need has a free slot, so its
-- cost does not grow with the number waiting.

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
        'LIMIT', 0, STARTS_PER_CYCLE)
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

-- Merges the heads of some lanes and decides the starts; answers them in order.
local function walk(q, group, room, left, due_only, starts)
  for _, lane in ipairs(group) do
    lane.heads = call('ZRANGE', lane.key, lane.taken, lane.taken + left - 1)
    lane.at = 1
  end
  while left > 0 do
    local best, first, second = first_head(group)
    if not best or (due_only and best.band >= SCHEDULED and first > q.now) then return left end
    local worker = pick(q, room, best.need)
    if worker then
      starts[#starts + 1] = { lane = best, member = best.heads[best.at], worker = worker,
        release = first, arrival = second, record = false, pool = false }
      worker.free = worker.free - 1
      best.at, best.taken, left = best.at + 1, best.taken + 1, left - 1
    else
      best.aside = true
    end
  end
  return left
end

local OWN_PLACE = string.byte('J')

-- Takes the decided places out of line and finds the job of each.
local function seat(q, starts, touched)
  for _, lane in ipairs(touched) do
    if lane.taken > 0 then call('ZREMRANGEBYRANK', lane.key, 0, lane.taken - 1) end
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

-- Leases one job to a worker and answers what is sent to it.
local function start_job(q, r, worker, body)
  counted(q, r, -1)
  r.phase, r.worker, r.attempt = 'R', worker.name, r.attempt + 1
  r.stage = math.max(r.stage, 1)
  counted(q, r, 1)
  touch(q, r)
  local list = worker.starts
  local count = #list
  list[count + 1] = r.key
  list[count + 2] = struct.pack(LEASE, q.dice, q.now, next_seq(q), 0, 0, '')
  return encode_start(r, q.dice, q.now, body)
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
  set_own(r, false)
  if r.band >= SCHEDULED then r.release, r.arrival = start.release, start.arrival end
end

local function start_all(q, starts, mine, touched)
  local records, again = seat(q, starts, touched), false
  local bodies = load_whole(q, records)
  for i, start in ipairs(starts) do
    local r = q.jobs[records[i]]
    if r then take_place(q, r, start) end
    if r and not (r.expires > 0 and r.expires <= q.now) then
      local message = start_job(q, r, start.worker, bodies[i])
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

-- Answers what the caller starts; the rest goes into the inboxes of other workers.
local function cycle(q, caller, mine)
  mine = mine or {}
  if q.paused or q.free <= 0 or q.waiting == 0 then return mine end
  local all, room, starts, left = lanes(q), room_for(q, caller), {}, math.min(STARTS_PER_CYCLE, q.free)
  for _, group in ipairs(groups(all)) do
    if left > 0 then left = walk(q, group, room, left, true, starts) end
  end
  if q.settings.eager and left > 0 then walk(q, pooled_of(all), room, left, false, starts) end
  if #starts == 0 then return mine end
  local again = start_all(q, starts, mine, all)
  for crew in pairs(q.crews.list) do
    for _, worker in ipairs(room[crew] or {}) do write_leases(q, worker) end
  end
  if again then return cycle(q, caller, mine) end
  q.more = #starts == STARTS_PER_CYCLE and q.free > 0
  return mine
end

-- The earliest moment after now that matters; now, if a bounded step has more to do; -1 for none.
local function next_at(q)
  local moment = math.min(q.expiry_at, q.lease_at)
  if not q.paused then moment = math.min(moment, q.due_at) end
  if q.more then moment = q.now end
  return moment < NEVER and moment or -1
end

-- The end of every verb: seat, say when to look again, and wake one worker if that has come forward.
local function finish_verb(q, caller)
  expire_due(q)
  local mine = cycle(q, caller)
  local moment = next_at(q)
  if caller then
    q.alarm = moment < 0 and NEVER or moment
  elseif moment >= 0 and (moment < q.alarm or q.alarm <= q.now) then
    q.alarm = moment
    for crew in pairs(q.crews.list) do
      local name = call('ZREVRANGE', q.prefix .. K.Free .. crew, 0, 0)[1]
      if name then
        send(q, name, 'W')
        break
      end
    end
  end
  if caller then list_free(q, caller) end
  close(q)
  return mine, moment
end

-- The end of a worker's verb: what it lost, and what it starts next.
local function shift(q, w, lost)
  local caller = w and not w.gone and w or nil
  local mine, moment = finish_verb(q, caller)
  return { caller and 1 or 0, moment, lost, mine, q.now }
end
