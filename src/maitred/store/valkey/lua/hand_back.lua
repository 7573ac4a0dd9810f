-- hand_back: puts jobs back at the front in the order in which they had started, with no attempt spent.
-- args: now, dice, worker, then two for each job: record, token
-- answers: {known, next_at, {lost records}, {starts}, now}
-- flags: allow-oom
verb.hand_back = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local w = worker_at(q, args[3])
  local leases, lost = held(w, args, 4, 2)
  give_back(q, w, leases, false)
  return shift(q, w, lost)
end
