-- line: shows waiting jobs in line order, from a cursor on. A cursor keeps the time of the first page, so that
-- a place which falls due in between is neither missed nor shown twice.
-- args: now, dice, cursor ('' or what the last page answered), how many
-- answers: {now, paused, limits, used, space, {views}, next cursor or '', how many wait}
-- flags: no-writes
local function collect(group, low, high, want, found, due)
  for _, lane in ipairs(group) do
    lane.heads, lane.at = call('ZRANGEBYLEX', lane.key, low, high, 'LIMIT', 0, want), 1
  end
  while want > 0 do
    local best = first_head(group)
    if not best then return want end
    found[#found + 1] = { lane = best, member = best.heads[best.at], due = due }
    best.at, want = best.at + 1, want - 1
  end
  return want
end

local function record_at(q, place)
  local whose = string.sub(place.member, 18)
  if string.sub(place.member, 17, 17) == 'J' then return whose end
  local owner = place.lane.name .. '/' .. whose
  local rank = call('ZRANK', q.prefix .. K.Nonces .. owner, string.sub(place.member, 9, 16))
  return rank and call('ZRANGE', q.prefix .. K.SubmitterInfo .. owner, rank, rank)[1]
end

-- A cursor is the time, whether the last place was due, its group, and its 16 bytes of order.
local CURSOR = '<dBdc16'

local function due_places(q, all, from, want, found)
  for _, group in ipairs(groups(all)) do
    local number = group[1].group
    if want > 0 and (not from or number >= from.group) then
      local low = from and number == from.group and '(' .. from.order .. '\255' or '-'
      local high = group[1].band >= SCHEDULED and '(' .. key8(q.now + 1) or '+'
      want = collect(group, low, high, want, found, 1)
    end
  end
  return want
end

verb.line = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local from
  if args[3] ~= '' then
    from = {}
    q.now, from.due, from.group, from.order = struct.unpack(CURSOR, args[3])
  end
  local found, all, wanted = {}, lanes(q), tonumber(args[4])
  local want = wanted
  if not from or from.due == 1 then want = due_places(q, all, from, want, found) end
  if want > 0 then
    local low = from and from.due == 0 and '(' .. from.order .. '\255' or '[' .. key8(q.now + 1)
    want = collect(pooled_of(all), low, '+', want, found, 0)
  end
  local records = {}
  for _, place in ipairs(found) do records[#records + 1] = record_at(q, place) end
  local first
  if #records > 0 then
    local r = job_at(q, records[1])
    local release, arrival = place_of(q, r)
    first = places_before(q, r.band, r.priority, release, arrival) + 1
  end
  local last, cursor = found[#found], ''
  if want == 0 and last then
    cursor = struct.pack(CURSOR, q.now, last.due, last.lane.group, string.sub(last.member, 1, 16))
  end
  return page(q, views(q, records, first), cursor, q.waiting)
end
