-- sweep: forgets jobs that ended longer ago than the retention, oldest first.
-- args: now, dice, how many at the most
-- answers: {next_at, how many}
-- flags: allow-oom
verb.sweep = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local count = sweep(q, tonumber(args[3]))
  local _, moment = finish_verb(q)
  return { moment, count }
end
