-- finish: takes in how runs ended that the worker still holds, and gives it what comes next, in one round trip: the
-- next stage of the same job where it can go on with it, and then whoever can be seated.
-- args: now, dice, worker, then seven for each job: record, token, code, message, result, what else its stage said, the
--   run's last words (see lib/speech.lua)
-- answers: {known, next_at, {lost records}, {starts}, now}
-- flags: allow-oom
local FLAGS_AT, ATTEMPT_AT, WITH_PROGRESS = 6, 11, 1

-- What a stage said beside its end: whether it failed only for a while, priority, space, identifiers, status.
local function read_said(bytes)
  if bytes == '' then return { transient = false, priority = -1, space = -1, status = 0 } end
  local transient, priority, space, status, named, identifiers = struct.unpack('<BdddBI4c0', bytes)
  return { transient = transient == 1, priority = priority, space = space, status = status,
    identifiers = named == 1 and identifiers or nil }
end

local function take_in(q, r, said)
  if said.priority >= 0 then r.priority = said.priority end
  if said.space >= 0 then
    if has(r, PROVISIONED) then q.space_used = q.space_used + said.space - extra_of(q, r).space end
    if said.space ~= extra_of(q, r).space then change_extra(q, r).space = said.space end
  end
  if said.identifiers and said.identifiers ~= extra_of(q, r).identifiers then
    change_extra(q, r).identifiers = said.identifiers
  end
  if said.status > 0 then change_extra(q, r).status = said.status end
end

-- Lets a job wait before its next attempt: twice as long each time, half of it by the dice.
local function back_off(q, r, code, message, number)
  local half = math.floor(math.min(q.settings.most_backoff, q.settings.backoff * 2 ^ (r.attempt - 1)) / 2)
  local at = 2 * (number % 8)
  local roll = string.byte(q.dice, at + 1) * 256 + string.byte(q.dice, at + 2)
  r.release = q.now + half + math.floor(half * roll / 65536)
  if r.band < SCHEDULED then r.band = SCHEDULED end
  set_message(r, message)
  tell.returned(q, r.key, code)
  go_on(q, r, code)
end

local function serves(q, w, need)
  for _, crew in ipairs(q.crews.by_need[need] or {}) do
    if crew == w.crew then return true end
  end
  return false
end

local function can_carry(q, w, mine, r)
  return not q.paused and not w.gone and mine.free > 0 and serves(q, w, r.need) and not lacks_space(q, r)
    and not hold_reason(q, r) and not is_blocked(q, r.id)
end

-- Moves a job to its next stage: the worker carries it on at once, or it waits for another.
local function next_stage(q, w, mine, r, message, result)
  counted(q, r, -1)
  r.stage, r.attempt, r.unspent = r.stage + 1, 0, 0
  counted(q, r, 1)
  r.need = STAGE .. q.settings.stages[r.stage]
  q.data = q.data or {}
  q.data[r.key] = result
  set_message(r, message)
  touch(q, r)
  local units = free_units(q)
  if can_carry(q, w, mine, r) and not first_full(units, r.level) then
    mine.free = mine.free - 1
    local body = call('HGET', q.prefix .. K.Jobs, 'b' .. r.key) or ''
    return start_job(q, r, mine, start_class(q, units, r), body, result)
  end
  go_on(q, r)
end

-- Takes in how a run ended whose slot and units are back; answers the start of its next stage, if it goes on.
local function settle_run(q, w, mine, lease, args)
  local r, at = job_at(q, lease.record), lease.at
  local code, message, result, said = args[at + 2], args[at + 3], args[at + 4], read_said(args[at + 5])
  log(q, r, lease, code)
  take_in(q, r, said)
  speech.say(q, r, args[at + 6])
  touch(q, r)
  if lease.kind ~= INTERACTIVE_RUN then
    if code ~= '' and said.transient and r.attempt < q.settings.attempts then
      back_off(q, r, code, message, (at - 4) / 7)
      return nil
    end
    if code == '' and r.stage < #q.settings.stages then return next_stage(q, w, mine, r, message, result) end
  end
  end_job(q, r, code, message, result)
  if said.status > 0 then call('ZREM', q.prefix .. K.Outbox, r.key) end
end

-- Ends at once what ends for good and has no more to it; answers the rest, which needs a longer look.
local function end_plain(q, w, leases, args, lost)
  local records, rest, ended = {}, {}, {}
  for i, lease in ipairs(leases) do records[i] = lease.record end
  local kept = hmget(q.prefix .. K.Jobs, records)
  for i, lease in ipairs(leases) do
    local at, bytes = lease.at, kept[i]
    if not bytes or SETTLED[lease.stopping] then
      lost[#lost + 1] = lease.record
      speech.add_to_end(q, w, lease, args[at + 6], args[at + 4])
    elseif q.settings.staged or args[at + 5] ~= '' or string.byte(bytes, FLAGS_AT) >= EXTRA
      or string.byte(args[at + 6]) == WITH_PROGRESS then
      rest[#rest + 1] = lease
    else
      if args[at + 6] ~= '' then
        speech.add(q, lease.record, (struct.unpack('<H', bytes, ATTEMPT_AT)), args[at + 6])
      end
      ended[#ended + 1] = lease.record
      ended[#ended + 1] = end_run(q, lease.record, bytes, lease, args[at + 2], args[at + 3], args[at + 4])
    end
  end
  write_hash(q.prefix .. K.Jobs, ended)
  return rest
end

verb.finish = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local w = worker_at(q, args[3])
  local leases, lost = held(w, args, 4, 7)
  local carried = {}
  if #leases > 0 then
    local rest = end_plain(q, w, leases, args, lost)
    unhand(q, w, leases)
    local mine = #rest > 0 and room_for(q, w).mine
    for _, lease in ipairs(rest) do carried[#carried + 1] = settle_run(q, w, mine, lease, args) end
    if #carried > 0 then write_leases(q, mine) end
  end
  local answer = shift(q, w, lost)
  for _, start in ipairs(answer[4]) do carried[#carried + 1] = start end
  answer[4] = carried
  return answer
end
