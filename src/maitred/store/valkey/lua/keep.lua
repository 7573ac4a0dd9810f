-- keep: keeps files that a run made, in place of those that are kept of its version.
-- args: now, dice, worker, record, token, then three for each file: name, type, content
-- answers: {size of all, the most that may be}: nothing is kept if it is more; or the code of a refusal
-- flags:
verb.keep = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local w = worker_at(q, args[3])
  local lease = held(w, { args[4], args[5] }, 1, 2)[1]
  local r = lease and speech.job_of(q, w, lease)
  local size, named, files = 0, {}, {}
  for i = 6, #args, 3 do
    local name, kind, data = args[i], args[i + 1], args[i + 2]
    size = size + #data
    named[#named + 1] = struct.pack('<Hc0Hc0d', #name, name, #kind, kind, #data)
    files[#files + 1] = name
    files[#files + 1] = struct.pack('<Hc0', #kind, kind) .. data
  end
  if r and size <= q.settings.artifact_limit then
    local key, listed = q.prefix .. K.Artifacts .. r.key, table.concat(named)
    call('UNLINK', key)
    write_hash(key, files)
    if listed ~= extra_of(q, r).artifacts then change_extra(q, r).artifacts = listed end
  end
  finish_verb(q)
  return r and { size, q.settings.artifact_limit } or 'lease-lost'
end
