-- finish: ends the jobs that the worker still holds and gives it the next ones, in one round trip.
-- args: now, dice, worker, then five for each job: record, token, code, message, result
-- answers: {known, next_at, {lost records}, {starts}, now}
-- flags: allow-oom
verb.finish = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local w = worker_at(q, args[3])
  local leases, lost = held(w, args, 4, 5)
  local records = {}
  for i, lease in ipairs(leases) do records[i] = lease.record end
  if #records > 0 then
    local kept, ended = hmget(q.prefix .. K.Jobs, records), {}
    for i, lease in ipairs(leases) do
      if kept[i] and not SETTLED[lease.stopping] then
        local at, count = lease.at, #ended
        ended[count + 1] = lease.record
        ended[count + 2] = end_run(q, lease.record, kept[i], lease, args[at + 2], args[at + 3], args[at + 4])
      else
        lost[#lost + 1] = lease.record
      end
    end
    write_hash(q.prefix .. K.Jobs, ended)
    unhand(q, w, leases)
  end
  return shift(q, w, lost)
end
