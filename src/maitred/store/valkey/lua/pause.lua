-- pause: starts nothing more; the queue goes on to accept.
-- args: now, dice, who and why (JSON text)
-- answers: {next_at}
-- flags: allow-oom
verb.pause = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  q.paused = true
  tell.house(q)
  call('SET', q.prefix .. K.Paused, q.now_text .. ' ' .. args[3])
  local _, moment = finish_verb(q)
  return { moment }
end
