-- release: moves a scheduled or bulk job to the front.
-- args: now, dice, id, nonce ('' for any)
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.release = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r, refusal = movable(q, args[3], args[4])
  if r then
    leave_line(q, r)
    to_front(q, r)
    stand_in_line(q, r)
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
