-- read: shows jobs by id, the newest version or the one asked for.
-- args: now, dice, then two for each job: id, version ('' for the newest)
-- answers: {now, paused, limits, used, space, {a view, or '' where there is none}}
-- flags: no-writes
verb.read = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local list = {}
  for i = 3, #args, 2 do
    local found = ''
    for _, r in ipairs(versions(q, args[i])) do
      if args[i + 1] == '' or tonumber(args[i + 1]) == r.version then
        found = views(q, { r.key })[1]
        break
      end
    end
    list[#list + 1] = found
  end
  return page(q, list)
end
