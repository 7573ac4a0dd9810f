-- resume: starts again after a pause.
-- args: now, dice
-- answers: {next_at}
-- flags: allow-oom
verb.resume = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  q.paused = false
  tell.house(q)
  call('DEL', q.prefix .. K.Paused)
  local _, moment = finish_verb(q)
  return { moment }
end
