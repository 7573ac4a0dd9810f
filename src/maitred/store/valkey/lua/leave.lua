-- leave: takes the worker's free slots off the floor; it is gone when it holds nothing more.
-- args: now, dice, worker
-- answers: {known, next_at, {lost records}, {starts}, now}
-- flags: allow-oom
verb.leave = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local w = worker_at(q, args[3])
  if w then
    set_draining(q, w, true)
    save_worker(q, w)
    tell.house(q)
    unhand(q, w, {})
  end
  return shift(q, w, {})
end
