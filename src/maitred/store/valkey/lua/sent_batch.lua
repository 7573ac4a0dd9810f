-- sent_batch: notes that the last report of a batch was delivered or given up, or when to try again.
-- args: now, dice, id, token of the lock, microseconds until the next try ('' for none)
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.sent_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b, refusal = batch.at(q, args[3]), nil
  if not b or args[4] == '' or b.token ~= args[4] then
    refusal = 'lock-lost'
  else
    local again = tonumber(args[5])
    b.tries, b.unsent, b.try_at, b.dirty = b.tries + 1, again ~= nil, again and q.now + again or 0, true
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
