-- deliveries: shows the last tries at the notices of a job.
-- args: now, dice, id, version ('' for the newest)
-- answers: {the tries, oldest first, each with its length before it}, nothing in it if there is no such job
-- flags: no-writes
verb.deliveries = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  for _, r in ipairs(versions(q, args[3])) do
    if args[4] == '' or tonumber(args[4]) == r.version then
      return { call('HGET', q.prefix .. K.Jobs, 'n' .. r.key) or '' }
    end
  end
  return {}
end
