-- admit: starts an interactive job on a slot that is free after the cycle, or denies it and keeps nothing of it.
-- args: now, dice, job id, submitter, need, body, 1 if its submitter is told of it, the time without a watcher after
--   which it is given up (0: none)
-- answers: {record (0: denied), why it was denied}
-- flags:
local function count_of_submitter(q, submitter)
  local count = 0
  if q.halts == 0 then return count end
  for crew in pairs(q.crews.list) do
    for _, member in ipairs(call('ZRANGE', yielding(q, crew, 0), 0, -1)) do
      local r = job_at(q, string.sub(member, 1, 8))
      if r and r.submitter == submitter then count = count + 1 end
    end
  end
  return count
end

local function served(q, need)
  for _, crew in ipairs(q.crews.by_need[need] or {}) do
    if call('ZCARD', q.prefix .. K.Free .. crew) > 0 then return true end
  end
  return false
end

local function denial(q, id, submitter, need)
  if call('HEXISTS', q.prefix .. K.Ids, id) == 1 or is_blocked(q, id) then return 'known' end
  if q.paused then return 'paused' end
  if count_of_submitter(q, submitter) >= q.settings.interactive_per_submitter then return 'per-submitter' end
  if not served(q, need) then return 'no-worker' end
  return pick(q, room_for(q), need) and '' or 'slots'
end

-- Under `squeeze` one who is denied lowers an elastic run of the highest class by one class.
local function lower_one(q)
  local crews = {}
  for crew in pairs(q.crews.list) do crews[#crews + 1] = crew end
  local level, runs = highest(q, crews)
  if level > 1 then cut(q, chosen(q, runs, 1), level - 1) end
end

local function start_session(q, id, submitter, need, body, callback, abandon)
  local r = new_job(q, id, submitter, need, INTERACTIVE, body)
  r.duration = q.settings.interactive_cap
  notices.describe(q, r, callback, abandon)
  local worker = pick(q, room_for(q), need)
  worker.free = worker.free - 1
  send(q, worker.name, start_job(q, r, worker, 1, body))
  write_leases(q, worker)
  return r.record
end

verb.admit = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  expire_due(q)
  cycle(q)
  flush(q)
  local id, submitter, need, record = args[3], args[4], args[5], 0
  local denied = denial(q, id, submitter, need)
  if denied == '' then
    record = start_session(q, id, submitter, need, args[6], tonumber(args[7]), tonumber(args[8]))
  elseif denied == 'slots' and not q.settings.borrow then
    lower_one(q)
  end
  finish_verb(q)
  return { record, denied }
end
