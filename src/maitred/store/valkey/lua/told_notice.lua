-- told_notice: logs a try at a notice; it is tried again, or it is done and the job's next one is due.
-- args: now, dice, record, number of the notice, token of its lock, the try (see records.py), when it is tried again (0:
--   it is done)
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.told_notice = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r = job_at(q, args[3])
  local told = r and notices.told(q, r, tonumber(args[4]), args[5], args[6], tonumber(args[7]))
  local _, moment = finish_verb(q)
  return told and { moment } or 'lock-lost'
end
