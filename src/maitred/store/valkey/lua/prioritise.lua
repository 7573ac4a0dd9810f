-- prioritise: gives a waiting job another priority, and with it a place of its own.
-- args: now, dice, id, priority
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.prioritise = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r, priority, refusal = newest_of(q, args[3]), tonumber(args[4]), nil
  if not r then
    refusal = 'unknown-job'
  elseif r.phase ~= 'W' and r.phase ~= 'H' then
    refusal = 'not-waiting'
  else
    local moves = r.phase == 'W' and r.band >= SCHEDULED and r.priority ~= priority
    if moves then leave_line(q, r) end
    r.priority = priority
    if moves then join_own(q, r) end
    touch(q, r)
    if q.news then tell.changed(q, r) end
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
