-- remove: deletes all versions of a job: out of line at once, or stopped; afterwards the id is unknown.
-- args: now, dice, id
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.remove = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local all = versions(q, args[3])
  for _, r in ipairs(all) do
    counted(q, r, -1)
    if q.news then tell_run(q, 'D', r.key) end
    if r.phase == 'W' then
      leave_line(q, r)
    elseif r.phase == 'R' then
      stop(q, r, 'deleted')
    elseif r.phase == 'E' then
      flush(q)
      call('ZREM', q.prefix .. K.Ended, r.key)
    end
    forget(q, r)
  end
  if #all > 0 then call('HDEL', q.prefix .. K.Ids, args[3]) end
  local _, moment = finish_verb(q)
  return #all > 0 and { moment } or 'unknown-job'
end
