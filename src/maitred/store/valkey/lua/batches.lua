-- batches: shows batches, newest first and without their reports, as far as a bounded number of them is looked at.
-- args: now, dice, code of a state ('' for all), external id ('' for all), the batch to begin after ('' for the newest),
--   how many to show, how many to look at
-- answers: {{id, head, submission, '', …}, id to go on after ('' at the end), how many batches there are}
-- flags: no-writes
local function show(q, ids, state, limit)
  local found, last, looked = {}, '', 0
  for _, id in ipairs(ids) do
    local head = call('HGET', q.prefix .. K.Batches, id)
    if #found == 4 * limit then break end
    looked = looked + 1
    last = id
    if head and (state == '' or string.sub(head, 1, 1) == state) then
      local submission = call('HGET', q.prefix .. K.Batches, 's' .. id)
      for _, part in ipairs({ id, head, submission or '', '' }) do found[#found + 1] = part end
    end
  end
  return found, last, looked
end

verb.batches = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local list, state, external, after = q.prefix .. K.BatchList, args[3], args[4], args[5]
  local limit, most, total = tonumber(args[6]), tonumber(args[7]), call('ZCARD', list)
  if external ~= '' then
    local id = call('HGET', q.prefix .. K.BatchIds, external)
    local found = show(q, id and after == '' and { id } or {}, state, limit)
    return { found, '', #found / 4 }
  end
  local high = after ~= '' and '(' .. batch.number(after) or '+inf'
  local ids = call('ZREVRANGEBYSCORE', list, high, '-inf', 'LIMIT', 0, most)
  local found, last, looked = show(q, ids, state, limit)
  return { found, (looked < #ids or #ids == most) and last or '', total }
end
