-- shorten: lowers the duration of a waiting or running job. A waiting one takes the smallest class that holds it
-- and keeps its place; a running one gives back what it no longer needs, and stops below the time already run.
-- args: now, dice, id, duration
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
local function class_of(q, duration)
  for k, cap in ipairs(q.settings.caps) do
    if duration <= cap then return k end
  end
end

local function shorten(q, r, duration)
  local caps, elastic = q.settings.caps, has(r, ELASTIC)
  local level = class_of(q, duration)
  if r.phase == 'E' then return 'ended' end
  if r.band == INTERACTIVE then return 'interactive' end
  local most = r.duration > 0 and r.duration or caps[elastic and #caps or r.level]
  if not level or duration > most then return 'longer-duration' end
  if r.phase == 'R' then
    local lease = lease_of(q, r.worker, r.key)
    if lease.stopping == '' and duration < lease.duration then
      lower_run(q, worker_at(q, r.worker), lease, level, duration, 'time-limit')
    end
  elseif r.phase == 'W' and not elastic and level ~= r.level then
    leave_line(q, r)
    r.level = level
    join_own(q, r)
  end
  r.duration = duration
  if not elastic then r.level = level end
  touch(q, r)
  if q.news then tell.changed(q, r) end
end

verb.shorten = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r, refusal = newest_of(q, args[3]), 'unknown-job'
  if r then refusal = shorten(q, r, tonumber(args[4])) end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
