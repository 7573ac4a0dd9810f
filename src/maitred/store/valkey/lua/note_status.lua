-- note_status: notes the versions of states that a worker made by taking jobs up in the ledger's tree.
-- args: now, dice, worker, then three for each job: record, token, status
-- answers: {lost records}
-- flags: allow-oom
verb.note_status = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local leases, lost = held(worker_at(q, args[3]), args, 4, 3)
  for _, lease in ipairs(leases) do
    local r, status = job_at(q, lease.record), tonumber(args[lease.at + 2])
    if not r then
      lost[#lost + 1] = lease.record
    elseif status > extra_of(q, r).status then
      change_extra(q, r).status = status
    end
  end
  finish_verb(q)
  return lost
end
