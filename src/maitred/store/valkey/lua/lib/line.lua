-- The Line: places in `Reservations.<lane>`, in line order by their bytes; a submitter's jobs in
-- `SubmitterInfo.<lane>/<submitter>`, top first; its places in `Nonces.<lane>/<submitter>`, by release.
-- The k-th nonce serves the k-th job of the stack. A place of a job's own is in `Reservations` alone.

local function order_key(band, release, arrival)
  if band == FRONT then return struct.pack('>I8I8', TOP - arrival, arrival) end
  if band == IMMEDIATE then return struct.pack('>I8I8', arrival, arrival) end
  return struct.pack('>I8I8', release, arrival)
end

local function own_member(r)
  return order_key(r.band, r.release, r.arrival) .. 'J' .. r.key
end

-- The keys of a lane; the submitter's name completes those of its stack and its nonces.
local function keys_of(q, lane)
  local keys = q.keys_of_lane[lane]
  if not keys then
    keys = { places = q.prefix .. K.Reservations .. lane, stack = q.prefix .. K.SubmitterInfo .. lane .. '/',
      nonces = q.prefix .. K.Nonces .. lane .. '/' }
    q.keys_of_lane[lane] = keys
  end
  return keys
end

-- Text order of names is the order of band, priority and class; need by bytes.
local function by_bytes(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- Lists a new lane. Lanes that were left are dropped only when there are many: one that fills and empties all
-- the time should not be written all the time.
local function list_lane(q, name)
  local names = { name }
  local crowded = #q.lanes.list >= C.LANES_KEPT
  for _, lane in ipairs(q.lanes.list) do
    if not crowded or call('EXISTS', q.prefix .. K.Reservations .. lane.name) == 1
      or q.adds[q.prefix .. K.Reservations .. lane.name] then
      names[#names + 1] = lane.name
    end
  end
  table.sort(names, by_bytes)
  local written = cjson.encode(names)
  call('SET', q.prefix .. K.Lanes, written)
  q.lanes = remember(written, read_lanes)
end

local function enter(q, r, lane)
  q.waiting = q.waiting + 1
  if not q.lanes.by_name[lane] then list_lane(q, lane) end
  if r.band >= SCHEDULED and r.release > q.now and r.release < q.due_at then q.due_at = r.release end
  if r.expires > 0 then
    add(q, q.prefix .. K.Expiry, string.format('%d', r.expires), r.key)
    if r.expires < q.expiry_at then q.expiry_at = r.expires end
  end
  if has(r, EXEMPT) then
    call('HINCRBY', q.prefix .. K.Exempt, r.submitter, 1)
    q.exempts = true
  end
end

-- One that does not count against its submitter waits no more.
local function uncount_exempt(q, r)
  if has(r, EXEMPT) and call('HINCRBY', q.prefix .. K.Exempt, r.submitter, -1) == 0 then
    call('HDEL', q.prefix .. K.Exempt, r.submitter)
  end
end

-- A place of the submitter's for the job, which goes on the stack.
local function join_line(q, r)
  local lane = lane_of(r)
  local keys, submitter, arrival = keys_of(q, lane), r.submitter, r.arrival
  set_own(r, false)
  local order = order_key(r.band, r.release, arrival)
  add(q, keys.places, '0', order .. 'S' .. submitter)
  if q.news then tell.place(q, 'A', lane, order) end
  add(q, keys.stack .. submitter,
    string.format('%d', q.settings.order == 'oldest-first' and arrival or -arrival), r.key)
  add(q, keys.nonces .. submitter, r.release == q.now and q.now_text or string.format('%d', r.release),
    arrival == r.record and r.key or key8(arrival))
  enter(q, r, lane)
end

-- A place of the job's own.
local function join_own(q, r)
  local lane = lane_of(r)
  local keys = keys_of(q, lane)
  set_own(r, true)
  local member = own_member(r)
  add(q, keys.places, '0', member)
  if q.news then tell.place(q, 'A', lane, string.sub(member, 1, 16)) end
  add(q, q.prefix .. K.Own .. r.submitter, string.format('%d', r.arrival), r.key)
  enter(q, r, lane)
end

-- The place that a waiting job would take now: release and arrival.
local function place_of(q, r)
  if is_own(r) then return r.release, r.arrival end
  local keys = keys_of(q, lane_of(r))
  local rank = call('ZRANK', keys.stack .. r.submitter, r.key)
  local nonce = call('ZRANGE', keys.nonces .. r.submitter, rank, rank, 'WITHSCORES')
  return tonumber(nonce[2]), number8(nonce[1])
end

-- Takes the job out of line, and with it the place of its rank.
local function leave_line(q, r)
  flush(q)
  local lane = lane_of(r)
  local keys = keys_of(q, lane)
  if is_own(r) then
    local member = own_member(r)
    call('ZREM', keys.places, member)
    if q.news then tell.place(q, 'R', lane, string.sub(member, 1, 16)) end
    call('ZREM', q.prefix .. K.Own .. r.submitter, r.key)
    set_own(r, false)
  else
    r.release, r.arrival = place_of(q, r)
    call('ZREM', keys.stack .. r.submitter, r.key)
    call('ZREM', keys.nonces .. r.submitter, key8(r.arrival))
    local order = order_key(r.band, r.release, r.arrival)
    call('ZREM', keys.places, order .. 'S' .. r.submitter)
    if q.news then tell.place(q, 'R', lane, order) end
  end
  if r.expires > 0 then call('ZREM', q.prefix .. K.Expiry, r.key) end
  uncount_exempt(q, r)
  q.waiting = q.waiting - 1
end

-- All lanes that may have a place, in order of band and priority, for this call to mark as it walks.
local function lanes(q)
  flush(q)
  local list = {}
  for i, lane in ipairs(q.lanes.list) do
    list[i] = { name = lane.name, key = keys_of(q, lane.name).places, band = lane.band, group = lane.group,
      level = lane.level, need = lane.need, bare = lane.bare, lacking = lane.lacking, asking = 0, taken = 0, at = 1,
      last = false, aside = false, heads = false }
  end
  return list
end

-- The same lanes by band and priority: those of one group are merged by their heads.
local function groups(all)
  local list = {}
  for _, lane in ipairs(all) do
    local last = list[#list]
    if last and last[1].group == lane.group then
      last[#last + 1] = lane
    else
      list[#list + 1] = { lane }
    end
  end
  return list
end

-- Which of these lanes has the first head, and the two numbers of its order; nil if none has one left.
local function first_head(group)
  local best, first, second
  for _, lane in ipairs(group) do
    local head = not lane.aside and lane.heads[lane.at]
    if head then
      local order, arrival = struct.unpack('>I8I8', head)
      if not best or order < first or (order == first and arrival < second) then
        best, first, second = lane, order, arrival
      end
    end
  end
  return best, first, second
end

local function pooled_of(all)
  local list = {}
  for _, lane in ipairs(all) do
    if lane.band >= SCHEDULED then list[#list + 1] = lane end
  end
  return list
end

-- The first release after now over all lanes.
local function first_due_after(q)
  local first = NEVER
  for _, lane in ipairs(lanes(q)) do
    if lane.band >= SCHEDULED then
      local member = call('ZRANGEBYLEX', lane.key, '[' .. key8(q.now + 1), '+', 'LIMIT', 0, 1)[1]
      if member then first = math.min(first, number8(member)) end
    end
  end
  return first
end

-- How many places stand before this one.
local function places_before(q, band, priority, release, arrival)
  local group = band * 100 + (band >= SCHEDULED and priority or 0)
  local due = band < SCHEDULED or release <= q.now
  local mine = '(' .. order_key(band, release, arrival)
  local due_end = '(' .. key8(q.now + 1)
  local count = 0
  for _, lane in ipairs(lanes(q)) do
    if lane.group == group or (not due and lane.band >= SCHEDULED) then
      count = count + call('ZLEXCOUNT', lane.key, '-', mine)
    elseif not due or lane.group < group then
      count = count + (lane.band < SCHEDULED and call('ZCARD', lane.key)
        or call('ZLEXCOUNT', lane.key, '-', due_end))
    end
  end
  return count
end

-- The newest version of a job if it may be moved, else nil and the code of the refusal.
local function movable(q, id, nonce)
  local r = newest_of(q, id)
  if not r then return nil, 'unknown-job' end
  if r.phase ~= 'W' then return nil, 'not-waiting' end
  if r.band < SCHEDULED then return nil, 'not-movable' end
  if nonce ~= '' then
    local _, arrival = place_of(q, r)
    if is_own(r) or tonumber(nonce) ~= arrival then return nil, 'other-nonce' end
  end
  return r
end

-- How many are in a sorted set, those included that are still to be added.
local function card(q, key)
  local added = q.adds[key]
  return call('ZCARD', key) + (added and #added / 2 or 0)
end

-- How many jobs of a submitter wait that count against it, by its stacks and own places.
local function waiting_of(q, submitter)
  if q.exempts == nil then q.exempts = call('EXISTS', q.prefix .. K.Exempt) == 1 end
  local count = card(q, q.prefix .. K.Own .. submitter)
  if q.exempts then count = count - (tonumber(call('HGET', q.prefix .. K.Exempt, submitter) or 0)) end
  for _, lane in ipairs(q.lanes.list) do
    if lane.band >= SCHEDULED then count = count + card(q, keys_of(q, lane.name).stack .. submitter) end
  end
  return count
end
