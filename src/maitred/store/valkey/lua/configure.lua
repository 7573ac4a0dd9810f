-- configure: makes the queue or takes new settings; the order cannot change while scheduled or bulk jobs wait,
-- nor names and caps of the classes and the policy while any job waits or runs, nor stages and ledger while any has not
-- ended.
-- args: now, dice, settings (JSON text), number of stages
-- answers: {next_at} or the code of a refusal
-- flags:
local function same_plan(one, other)
  local same = one.elastic == other.elastic and #one.classes == #other.classes
  for i = 1, #one.classes do
    same = same and one.classes[i][1] == other.classes[i][1] and one.classes[i][2] == other.classes[i][2]
  end
  return same
end

local function same_stages(one, other)
  return table.concat(one, '\n') == table.concat(other, '\n')
end

verb.configure = function(keys, args)
  local key = keys[1]
  local prefix = string.sub(key, 1, #key - #K.Floor)
  if call('EXISTS', key) == 0 then
    call('SET', key, new_floor(#read_settings(args[3]).caps + 4 + tonumber(args[4])))
    call('SET', prefix .. K.Settings, args[3])
  end
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local new = remember(args[3], read_settings)
  local refusal
  if (q.waiting > 0 or q.used[1] > 0) and not same_plan(q.settings, new) then refusal = 'settings' end
  if new.order ~= q.settings.order and q.waiting > 0 then
    for _, lane in ipairs(lanes(q)) do
      if lane.band >= SCHEDULED and call('ZCARD', lane.key) > 0 then refusal = 'settings' end
    end
  end
  if not same_stages(q.settings.stages, new.stages) or q.settings.ledger ~= new.ledger then
    local unended = -(q.counts[3] or 0) - (q.counts[4] or 0)
    for _, count in ipairs(q.counts) do unended = unended + count end
    if unended > 0 then refusal = 'settings' end
  end
  if not refusal then
    q.settings = new
    for i = 4 + #new.stages + 1, #q.counts do q.counts[i] = nil end
    for k = #q.used + 1, #new.caps do q.used[k] = 0 end
    for k = #new.caps + 1, #q.used do q.used[k] = nil end
    call('SET', prefix .. K.Settings, args[3])
    tell.house(q)
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
