-- attend: notes that somebody watches these jobs, all versions of them; the time after which they are given up begins
-- anew.
-- args: now, dice, ids
-- answers: {next_at}
-- flags: allow-oom
verb.attend = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  for i = 3, #args do
    for _, r in ipairs(versions(q, args[i])) do notices.set_deadline(q, r) end
  end
  local _, moment = finish_verb(q)
  return { moment }
end
