-- tick: does what the clock asks for: due places, lost workers, expired and old jobs.
-- args: now, dice
-- answers: {next_at, now}
-- flags: allow-oom
verb.tick = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local swept = sweep(q, C.SWEPT_PER_TICK)
  local _, moment = finish_verb(q)
  return { swept == C.SWEPT_PER_TICK and q.now or moment, q.now }
end
