-- check: looks at one page of the Line and its records for broken invariants, and repairs what it finds if asked.
-- args: now, dice, part (see PARTS), cursor ('0' to begin), page size, '1' to repair
-- answers: {next cursor ('' at the end of the part), how many were looked at, {code, text, repaired, …},
--   {cursors of keys that are too long for this page}}
-- flags: allow-oom
local function pool_of(r)
  return lane_of(r) .. '/' .. r.submitter
end

-- The order key of a place, for the pool's lane and one of its nonces.
local function pool_member(lane, submitter, release, arrival)
  return order_key(tonumber(string.sub(lane, 1, 1)), release, arrival) .. 'S' .. submitter
end

local function check_waiting_job(q, r, record)
  local lane = lane_of(r)
  if is_own(r) then
    if not call('ZSCORE', q.prefix .. K.Reservations .. lane, own_member(r)) then
      checking.fault(q, 'place', checking.named(r) .. ' has lost its own place', function()
        call('ZADD', q.prefix .. K.Reservations .. lane, 0, own_member(r))
        checking.list_again(q, lane)
      end)
    end
    if not call('ZSCORE', q.prefix .. K.Own .. r.submitter, record) then
      checking.fault(q, 'own', checking.named(r) .. " is not among its submitter's own places", function()
        call('ZADD', q.prefix .. K.Own .. r.submitter, r.arrival, record)
      end)
    end
  elseif not call('ZSCORE', q.prefix .. K.SubmitterInfo .. pool_of(r), record) then
    checking.fault(q, 'place', checking.named(r) .. " waits and is in nobody's stack", function()
      set_own(r, true)
      call('ZADD', q.prefix .. K.Reservations .. lane, 0, own_member(r))
      call('ZADD', q.prefix .. K.Own .. r.submitter, r.arrival, record)
      checking.list_again(q, lane)
      touch(q, r)
    end)
  end
  if r.expires > 0 and not call('ZSCORE', q.prefix .. K.Expiry, record) then
    checking.fault(q, 'expiry', checking.named(r) .. ' would not expire', function()
      call('ZADD', q.prefix .. K.Expiry, r.expires, record)
      q.expiry_at = math.min(q.expiry_at, r.expires)
    end)
  end
end

local function check_running_job(q, r, record)
  local lease = call('HGET', q.prefix .. K.Leases .. r.worker, record)
  local known = call('HEXISTS', q.prefix .. K.WorkerInfo, r.worker) == 1
  if not lease or not known or SETTLED[decode_lease(lease).stopping] then
    checking.fault(q, 'state', checking.named(r) .. ' is said to run and has no lease', function()
      r.phase, r.band, r.worker = 'W', FRONT, ''
      r.release, r.arrival = q.now, next_seq(q)
      set_own(r, true)
      call('ZADD', q.prefix .. K.Reservations .. lane_of(r), 0, own_member(r))
      call('ZADD', q.prefix .. K.Own .. r.submitter, r.arrival, record)
      checking.list_again(q, lane_of(r))
      touch(q, r)
    end)
  end
end

local PARTS = {}

local function check_job(q, record, bytes)
  local r = decode_job(record, bytes)
  q.jobs[record] = r
  if call('HEXISTS', q.prefix .. K.Jobs, 'b' .. record) == 0 then
    checking.fault(q, 'body', checking.named(r) .. ' has lost its configuration')
  end
  if has(r, EXTRA) and call('HEXISTS', q.prefix .. K.Jobs, 'x' .. record) == 0 then
    checking.fault(q, 'body', checking.named(r) .. ' has lost its batch, profile and space', function()
      mark(r, EXTRA, false)
      touch(q, r)
    end)
  end
  local newest = call('HGET', q.prefix .. K.Ids, r.id)
  if not newest or number8(newest) < r.record then
    checking.fault(q, 'ids', checking.named(r) .. ' is not found by its id', function()
      call('HSET', q.prefix .. K.Ids, r.id, record)
    end)
  end
  if r.phase == 'W' then
    check_waiting_job(q, r, record)
  elseif r.phase == 'R' then
    check_running_job(q, r, record)
  elseif r.phase == 'E' then
    local list = q.prefix .. notices.list_of_ended(q, r)
    if not call('ZSCORE', list, record) then
      checking.fault(q, 'ended', checking.named(r) .. ' ended and would never be swept', function()
        call('ZADD', list, r.ended, record)
      end)
    end
  end
end

PARTS.jobs = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Jobs, cursor, size)
  for i = 1, #flat, 2 do
    if #flat[i] == 8 then check_job(q, flat[i], flat[i + 1]) end
  end
  return next_cursor, #flat / 4
end

-- Makes as many places as jobs: too few get one now, too many lose the last.
local function level(q, lane, submitter)
  local owner = lane .. '/' .. submitter
  local stack, nonces = q.prefix .. K.SubmitterInfo .. owner, q.prefix .. K.Nonces .. owner
  local surplus = call('ZCARD', nonces) - call('ZCARD', stack)
  while surplus > 0 do
    local last = call('ZPOPMAX', nonces)
    call('ZREM', q.prefix .. K.Reservations .. lane,
      pool_member(lane, submitter, tonumber(last[2]), number8(last[1])))
    surplus = surplus - 1
  end
  while surplus < 0 do
    local arrival = next_seq(q)
    call('ZADD', nonces, q.now, key8(arrival))
    call('ZADD', q.prefix .. K.Reservations .. lane, 0, pool_member(lane, submitter, q.now, arrival))
    checking.list_again(q, lane)
    surplus = surplus + 1
  end
end

PARTS.stacks = function(q, cursor, size)
  local name = q.prefix .. K.SubmitterInfo
  return checking.each_set(q, K.SubmitterInfo, cursor, size, function(key, members)
    local lane, submitter = string.match(string.sub(key, #name + 1), '^([^/]*)/(.*)$')
    for _, record in ipairs(members) do
      local r = job_at(q, record)
      if not r or r.phase ~= 'W' or is_own(r) or pool_of(r) ~= lane .. '/' .. submitter then
        checking.fault(q, 'stack', checking.record(record) .. ' does not belong on the stack of ' .. submitter, function()
          call('ZREM', key, record)
        end)
      end
    end
    local nonces = call('ZCARD', q.prefix .. K.Nonces .. lane .. '/' .. submitter)
    if nonces ~= call('ZCARD', key) then
      checking.fault(q, 'nonces', submitter .. ' has ' .. call('ZCARD', key) .. ' jobs and ' .. nonces .. ' places', function()
        level(q, lane, submitter)
      end)
    end
  end)
end

PARTS.nonces = function(q, cursor, size)
  local name = q.prefix .. K.Nonces
  return checking.each_set(q, K.Nonces, cursor, size, function(key, members)
    local lane, submitter = string.match(string.sub(key, #name + 1), '^([^/]*)/(.*)$')
    for _, nonce in ipairs(members) do
      local release = tonumber(call('ZSCORE', key, nonce))
      local member = pool_member(lane, submitter, release, number8(nonce))
      if not call('ZSCORE', q.prefix .. K.Reservations .. lane, member) then
        checking.fault(q, 'nonces', 'a nonce of ' .. submitter .. ' has no place', function()
          call('ZADD', q.prefix .. K.Reservations .. lane, 0, member)
          checking.list_again(q, lane)
        end)
      end
    end
    if call('ZCARD', q.prefix .. K.SubmitterInfo .. lane .. '/' .. submitter) == 0 then
      checking.fault(q, 'nonces', submitter .. ' has places and no job', function() level(q, lane, submitter) end)
    end
  end)
end

local function check_place(q, lane, key, member)
  local whose = string.sub(member, 18)
  if string.sub(member, 17, 17) == 'J' then
    local r = job_at(q, whose)
    if not r or r.phase ~= 'W' or not is_own(r) or lane_of(r) ~= lane or own_member(r) ~= member then
      checking.fault(q, 'place', 'a place of ' .. checking.record(whose) .. ' serves no job', function()
        call('ZREM', key, member)
      end)
    end
  elseif not call('ZSCORE', q.prefix .. K.Nonces .. lane .. '/' .. whose, string.sub(member, 9, 16)) then
    checking.fault(q, 'place', 'a place of ' .. whose .. ' has no nonce', function() call('ZREM', key, member) end)
  end
end

PARTS.places = function(q, cursor, size)
  local name = q.prefix .. K.Reservations
  return checking.each_set(q, K.Reservations, cursor, size, function(key, members)
    local lane = string.sub(key, #name + 1)
    if not q.lanes.by_name[lane] then
      checking.fault(q, 'lanes', 'lane ' .. lane .. ' is not listed', function() checking.list_again(q, lane) end)
    end
    for _, member in ipairs(members) do check_place(q, lane, key, member) end
  end)
end

PARTS.own = function(q, cursor, size)
  local name = q.prefix .. K.Own
  return checking.each_set(q, K.Own, cursor, size, function(key, members)
    local submitter = string.sub(key, #name + 1)
    for _, record in ipairs(members) do
      local r = job_at(q, record)
      if not r or r.phase ~= 'W' or not is_own(r) or r.submitter ~= submitter then
        checking.fault(q, 'own', checking.record(record) .. ' has no place of its own', function()
          call('ZREM', key, record)
        end)
      end
    end
  end)
end

PARTS.ids = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Ids, cursor, size)
  for i = 1, #flat, 2 do
    local r = job_at(q, flat[i + 1])
    if not r or r.id ~= flat[i] then
      checking.fault(q, 'ids', 'id ' .. flat[i] .. ' leads to a record that is not its own', function()
        call('HDEL', q.prefix .. K.Ids, flat[i])
      end)
    end
  end
  return next_cursor, #flat / 2
end

local function check_index(name, code, fits)
  return function(q, cursor, size)
    return checking.each_member(q, name, cursor, size, function(record)
      local r = job_at(q, record)
      if not r or not fits(q, r) then
        checking.fault(q, code, checking.record(record) .. ' is listed in ' .. name .. ' and does not belong there', function()
          call('ZREM', q.prefix .. name, record)
        end)
      end
    end)
  end
end

local function ended_in(name)
  return function(q, r) return r.phase == 'E' and notices.list_of_ended(q, r) == name end
end

PARTS.ended = check_index(K.Ended, 'ended', ended_in(K.Ended))
PARTS.kept = check_index(K.Kept, 'ended', ended_in(K.Kept))
PARTS.expiry = check_index(K.Expiry, 'expiry', function(_, r) return r.phase == 'W' and r.expires > 0 end)

verb.check = function(keys, args)
  return checking.page(PARTS, keys, args)
end
