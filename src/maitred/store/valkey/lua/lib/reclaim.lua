-- Who gives way: a walk along the due places on the floor as it will be when all stops that are under way are
-- confirmed. Whoever lacks room there, and could have it from an interactive or an elastic run, makes that one
-- give way. So each stop is for one waiting job, and none is asked for where one is already under way.
-- gives: reclaim, highest, chosen, cut

local HEADS = 8

-- Slots by crew and units by level, those of runs that are being stopped included.
local function floor_to_be(q, caller, rolls)
  local room, slots, units = room_for(q, caller), {}, free_units(q)
  for crew in pairs(q.crews.list) do
    slots[crew] = 0
    if q.free > 0 then
      for _, worker in ipairs(crew_room(q, room, crew)) do slots[crew] = slots[crew] + worker.free end
    end
    if q.stops > 0 then
      local flat = call('ZRANGE', q.prefix .. K.Credit .. crew, 0, -1, 'WITHSCORES')
      slots[crew] = slots[crew] + #flat / 2
      for i = 2, #flat, 2 do
        for k = 2, tonumber(flat[i]) do units[k] = units[k] + 1 end
      end
    end
  end
  return { slots = slots, units = units, freed = false, rolls = rolls, space = q.space_used, taken = {}, met = 0 }
end

local function most_free(q, to_be, need)
  local best
  for _, crew in ipairs(q.crews.by_need[need] or {}) do
    local free = to_be.slots[crew]
    if free > 0 and (not best or free > to_be.slots[best] or (free == to_be.slots[best]
      and by_bytes(table.concat(q.crews.list[best], '\n'), table.concat(q.crews.list[crew], '\n')))) then
      best = crew
    end
  end
  return best
end

-- A run as it is listed: its worker, its lease, and what to sort it by.
local function listed_run(member, start)
  local record = string.sub(member, 1, 8)
  return { worker = string.sub(member, 9), record = record, start = tonumber(start), number = number8(record) }
end

local function by_age(a, b)
  if a.start ~= b.start then return a.start < b.start end
  return a.number < b.number
end

-- The youngest run in these lists whose start is not after `latest`.
local function youngest(q, crews, class, latest)
  local best
  for _, crew in ipairs(crews) do
    local got = call('ZREVRANGEBYSCORE', yielding(q, crew, class), latest, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local run = got[1] and listed_run(got[1], got[2])
    if run and (not best or by_age(best, run)) then best = run end
  end
  return best
end

local function runs_in(q, crews, class)
  local runs = {}
  for _, crew in ipairs(crews) do
    local flat = call('ZRANGE', yielding(q, crew, class), 0, -1, 'WITHSCORES')
    for i = 1, #flat, 2 do runs[#runs + 1] = listed_run(flat[i], flat[i + 1]) end
  end
  return runs
end

-- Cuts an elastic run to the cap of a class; answers its worker and its lease.
local function cut(q, run, level)
  local w, lease = worker_at(q, run.worker), lease_of(q, run.worker, run.record)
  lower_run(q, w, lease, level, q.settings.caps[level], 'cut')
  return w, lease
end

local function cut_for(q, to_be, run, before, level)
  local w, lease = cut(q, run, level)
  if lease.stopping ~= '' then
    to_be.slots[w.crew] = to_be.slots[w.crew] + 1
    for k = 2, before do to_be.units[k] = to_be.units[k] + 1 end
  else
    for k = lease.level + 1, before do to_be.units[k] = to_be.units[k] + 1 end
    to_be.freed = true
  end
end

-- Halts an interactive run; with none, cuts elastic ones as the policy says.
local function make_room(q, to_be, need)
  local crews = q.crews.by_need[need] or {}
  local run = q.halts > 0 and youngest(q, crews, 0, '+inf')
  if run then
    local w = worker_at(q, run.worker)
    stop_run(q, w, lease_of(q, run.worker, run.record), job_at(q, run.record).id, 'halted')
    to_be.slots[w.crew] = to_be.slots[w.crew] + 1
  elseif q.elastics > 0 and not q.settings.borrow then
    local runs = {}
    for k = 2, #q.settings.caps do
      for _, each in ipairs(runs_in(q, crews, k)) do
        each.level = k
        runs[#runs + 1] = each
      end
    end
    table.sort(runs, by_age)
    for _, each in ipairs(runs) do cut_for(q, to_be, each, each.level, 1) end
  elseif q.elastics > 0 then
    local latest = q.now - q.settings.caps[1]
    run = youngest(q, crews, 1, latest)
    if run then
      cut_for(q, to_be, run, 1, 1)
    else
      for _, crew in ipairs(crews) do
        local first = call('ZRANGE', yielding(q, crew, 1), 0, 0, 'WITHSCORES')[2]
        if first then q.overdue_at = math.min(q.overdue_at, first + q.settings.caps[1]) end
      end
    end
  end
end

-- The highest class in which an elastic run can give way, and those runs.
local function highest(q, crews)
  local class = reach_of(q)
  return class, class > 1 and runs_in(q, crews, class) or {}
end

-- The n-th throw of the call's dice: one of the runs, counted from the oldest.
local function chosen(q, runs, number)
  table.sort(runs, by_age)
  local at = 2 * (number % 8)
  return runs[(string.byte(q.dice, at + 1) * 256 + string.byte(q.dice, at + 2)) % #runs + 1]
end

-- The first head of a group's lanes that is not set aside, read as far as it is needed.
local function next_head(group)
  for _, lane in ipairs(group) do
    if not lane.aside and not lane.heads[lane.at] and not lane.dry then
      lane.heads, lane.at = call('ZRANGE', lane.key, lane.taken, lane.taken + HEADS - 1), 1
      lane.dry = #lane.heads < HEADS
    end
  end
  return first_head(group)
end

local function reclaim_for(q, to_be, lane, crews)
  local crew = most_free(q, to_be, lane.bare)
  if not crew then
    make_room(q, to_be, lane.bare)
    crew = most_free(q, to_be, lane.bare)
  end
  if not crew then
    lane.aside = true
    return
  end
  local full = first_full(to_be.units, lane.level)
  while full do
    local level, runs = highest(q, crews)
    to_be.rolls = to_be.rolls + 1
    cut_for(q, to_be, chosen(q, runs, to_be.rolls), level, full - 1)
    full = first_full(to_be.units, lane.level)
  end
  to_be.slots[crew] = to_be.slots[crew] - 1
  take_units(to_be.units, lane.level)
  to_be.space = to_be.space + lane.asking
  lane.at, lane.taken = lane.at + 1, lane.taken + 1
end

-- Whether only the floor keeps the head of a lane from starting: not if it is held, or has to wait for space.
local function passes(q, to_be, lane)
  local r = peek(q, lane, lane.heads[lane.at], to_be.taken)
  if not r then return true end
  if hold_reason(q, r) then
    lane.at, lane.taken, to_be.met = lane.at + 1, lane.taken + 1, to_be.met + 1
    return false
  end
  lane.asking = lane.lacking and extra_of(q, r).space or 0
  if lane.lacking and q.settings.space > 0 and lane.asking > q.settings.space - to_be.space then
    to_be.no_space = true
    return false
  end
  return true
end

-- One walk; answers whether units came free at once, and how often the dice were thrown by now. Held jobs leave the
-- line when a slot comes free; until then there may be any number of them, so the walk ends at a bound.
local function reclaim_along(q, caller, rolls)
  local to_be, crews = nil, {}
  for _, group in ipairs(groups(lanes(q))) do
    for _, lane in ipairs(group) do lane.heads, lane.dry = {}, false end
    if to_be then set_aside(group, to_be.units.aside) end
    if to_be and to_be.no_space then set_lacking_aside(group) end
    while true do
      local lane, first = next_head(group)
      if not lane or (lane.band >= SCHEDULED and first > q.now) then break end
      if not to_be then
        to_be = floor_to_be(q, caller, rolls)
        for crew in pairs(q.crews.list) do crews[#crews + 1] = crew end
      end
      local passing = not (q.flags > 0 or lane.lacking) or passes(q, to_be, lane)
      if to_be.no_space then set_lacking_aside(group) end
      local beyond = first_full(to_be.units, lane.level) and first_beyond(to_be.units, yields_of(q), lane.level)
      if not passing then
        lane.asking = 0
      elseif beyond then
        to_be.units.aside = beyond
        set_aside(group, beyond)
      else
        reclaim_for(q, to_be, lane, crews)
      end
      if to_be.met == C.HELD_PER_WALK then return to_be.freed, to_be.rolls end
    end
  end
  return to_be ~= nil and to_be.freed, to_be and to_be.rolls or rolls
end

-- Makes runs give way to due places that lack only what those hold. Tells whether units came free at once, so that
-- the line is worth another walk. A stop moves the newer version of its job to another lane, under the feet of the
-- walk: then it is walked again, for those who were passed over.
local function reclaim(q, caller)
  if q.halts == 0 and (q.elastics == 0 or (q.settings.borrow and q.now < q.cut_at)) then
    if q.elastics > 0 then q.overdue_at = q.cut_at end
    return false
  end
  local any, rolls = false, 0
  repeat
    q.moved = false
    local freed
    freed, rolls = reclaim_along(q, caller, rolls)
    any = any or freed
  until not q.moved
  if q.settings.borrow and q.now >= q.cut_at then
    q.cut_at = NEVER
    for crew in pairs(q.crews.list) do
      local first = call('ZRANGE', yielding(q, crew, 1), 0, 0, 'WITHSCORES')[2]
      if first then q.cut_at = math.min(q.cut_at, first + q.settings.caps[1]) end
    end
  end
  return any
end
