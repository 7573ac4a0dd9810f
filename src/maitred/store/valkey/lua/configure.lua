-- configure: makes the queue or takes new settings; the order cannot change while scheduled or
-- bulk jobs wait.
-- args: now, dice, settings (JSON text), number of stages
-- answers: {next_at} or the code of a refusal
-- flags:
verb.configure = function(keys, args)
  local key = keys[1]
  local prefix = string.sub(key, 1, #key - #K.Floor)
  if call('EXISTS', key) == 0 then
    local counts = {}
    for i = 1, 4 + tonumber(args[4]) do counts[i] = 0 end
    call('SET', key, struct.pack(FLOOR, SCHEMA, 0, 0, 0, 0, 0, NEVER, NEVER, NEVER, NEVER)
      .. struct.pack(doubles(#counts), unpack(counts)))
    call('SET', prefix .. K.Settings, args[3])
  end
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local new = cjson.decode(args[3])
  local refusal
  if new.order ~= q.settings.order and q.waiting > 0 then
    for _, lane in ipairs(lanes(q)) do
      if lane.band >= SCHEDULED and call('ZCARD', lane.key) > 0 then refusal = 'settings' end
    end
  end
  if not refusal then
    q.settings = new
    call('SET', prefix .. K.Settings, args[3])
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
