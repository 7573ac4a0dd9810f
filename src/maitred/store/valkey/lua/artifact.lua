-- artifact: gives a file that is kept of a job, of the newest version or the one asked for.
-- args: now, dice, id, version ('' for the newest), name
-- answers: its type and content, or '' if there is none
-- flags: no-writes
verb.artifact = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local r = speech.version(q, args[3], args[4])
  return r and call('HGET', q.prefix .. K.Artifacts .. r.key, args[5]) or ''
end
