-- said: notes that the ledger's tree has heard of a job's state, or has forgotten jobs that were swept here.
-- args: now, dice, record ('' for none), state, status, then ledger ids of forgotten jobs
-- answers: {next_at}
-- flags: allow-oom
verb.said = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r = args[3] ~= '' and job_at(q, args[3])
  if r then
    local status = tonumber(args[5])
    if status > extra_of(q, r).status then change_extra(q, r).status = status end
    if state_of(q, r) == args[4] then call('ZREM', q.prefix .. K.Outbox, r.key) end
  end
  for i = 6, #args do call('LREM', q.prefix .. K.Gone, 0, args[i]) end
  local _, moment = finish_verb(q)
  return { moment }
end
