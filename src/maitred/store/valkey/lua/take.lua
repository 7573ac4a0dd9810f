-- take: gives the worker what it has room for.
-- args: now, dice, worker
-- answers: {known, next_at, {lost records}, {starts}, now}
-- flags: allow-oom
verb.take = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  return shift(q, worker_at(q, args[3]), {})
end
