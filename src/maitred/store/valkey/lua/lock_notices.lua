-- lock_notices: locks the first notice of jobs where that is due and not locked, for as long as a try may take.
-- args: now, dice, owner, token, how many at the most
-- answers: {now, paused, limits, used, space, {view of a job, its notice, how often that was tried, …}}
-- flags: allow-oom
verb.lock_notices = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local found, list = notices.lock(q, args[3], args[4], tonumber(args[5])), {}
  finish_verb(q)
  for _, each in ipairs(found) do
    local shown = views(q, { each[1] })[1]
    if shown then
      list[#list + 1] = shown
      list[#list + 1] = each[2]
      list[#list + 1] = each[3]
    end
  end
  return page(q, list)
end
