-- say: keeps what runs say that the worker still holds.
-- args: now, dice, worker, then four for each run, once: record, token, how many parts it has
--   said before, words (see lib/speech.lua)
-- answers: {the places of those that were heard, from 0 on}
-- flags: allow-oom
verb.say = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local heard = {}
  local w = worker_at(q, args[3])
  for _, lease in ipairs((held(w, args, 4, 4))) do
    local r = speech.job_of(q, w, lease)
    if r then
      speech.say(q, r, args[lease.at + 3], lease.token, tonumber(args[lease.at + 2]))
      heard[#heard + 1] = (lease.at - 4) / 4
    end
  end
  finish_verb(q)
  return heard
end
