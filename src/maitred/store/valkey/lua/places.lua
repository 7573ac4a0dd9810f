-- places: the order of the places of a lane, some at a time.
-- args: now, dice, lane, the last one known ('' to begin), how many
-- answers: 16 bytes for each place
-- flags: no-writes
verb.places = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local low = args[4] == '' and '-' or '(' .. args[4] .. '\255'
  local members = call('ZRANGEBYLEX', keys_of(q, args[3]).places, low, '+', 'LIMIT', 0, tonumber(args[5]))
  for i, member in ipairs(members) do members[i] = string.sub(member, 1, 16) end
  return table.concat(members)
end
