-- check_ledger: looks at one page of holds and space for broken invariants, and repairs what it finds if asked.
-- args: now, dice, part, cursor ('0' to begin), page size, '1' to repair
-- answers: as check does
-- flags: allow-oom
local PARTS = {}

-- The flags under which a held job is listed.
local function listed_under(q, r)
  local found = {}
  for _, flag in ipairs(flags_of(q, r)) do
    if call('ZSCORE', q.prefix .. K.HeldBy .. flag, r.key) then found[#found + 1] = flag end
  end
  return found
end

local function check_held_job(q, r)
  if not call('ZSCORE', q.prefix .. K.Held, r.key) then
    checking.fault(q, 'held', checking.named(r) .. ' is held and is not listed', function()
      call('ZADD', q.prefix .. K.Held, r.record, r.key)
    end)
  end
  local flags = listed_under(q, r)
  if #flags == 0 and extra_of(q, r).hold == '' then
    checking.fault(q, 'held', checking.named(r) .. ' is held and nothing holds it', function()
      call('ZREM', q.prefix .. K.Held, r.key)
      stand(q, r)
    end)
  elseif #flags > 1 then
    checking.fault(q, 'held', checking.named(r) .. ' is held and ' .. #flags .. ' holds list it', function()
      for i = 2, #flags do call('ZREM', q.prefix .. K.HeldBy .. flags[i], r.key) end
    end)
  end
end

-- Held jobs have a reason, and what has ended has no space.
PARTS.held_jobs = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Jobs, cursor, size)
  local seen = 0
  for i = 1, #flat, 2 do
    if #flat[i] == 8 then
      local r = decode_job(flat[i], flat[i + 1])
      seen, q.jobs[r.key] = seen + 1, r
      if r.phase == 'H' then check_held_job(q, r) end
      if r.phase == 'E' and has(r, PROVISIONED) then
        checking.fault(q, 'space', checking.named(r) .. ' has ended and has space', function()
          return_space(q, r)
          touch(q, r)
        end)
      end
    end
  end
  return next_cursor, seen
end

PARTS.held = function(q, cursor, size)
  return checking.each_member(q, K.Held, cursor, size, function(record)
    local r = job_at(q, record)
    if not r or r.phase ~= 'H' then
      checking.fault(q, 'held', checking.record(record) .. ' is listed as held, and is not', function()
        call('ZREM', q.prefix .. K.Held, record)
      end)
    end
  end)
end

local function concerns(q, flag, r)
  for _, name in ipairs(flags_of(q, r)) do
    if name == flag then return true end
  end
  return false
end

-- Whom each hold of many lists; one that was taken away is kept until they have come back.
PARTS.holds = function(q, cursor, size)
  local name = q.prefix .. K.HeldBy
  return checking.each_set(q, K.HeldBy, cursor, size, function(key, members)
    local flag = string.sub(key, #name + 1)
    if call('HEXISTS', q.prefix .. K.Holds, flag) == 0 and not call('LPOS', q.prefix .. K.Returning, flag) then
      checking.fault(q, 'held', 'jobs are held by ' .. flag .. ', which holds nobody', function()
        call('RPUSH', q.prefix .. K.Returning, flag)
        q.returning = q.returning + 1
      end)
    end
    for _, record in ipairs(members) do
      local r = job_at(q, record)
      if not r or r.phase ~= 'H' or not concerns(q, flag, r) then
        checking.fault(q, 'held', checking.record(record) .. ' is listed by ' .. flag .. ', which does not hold it', function()
          call('ZREM', key, record)
        end)
      end
    end
  end)
end

-- What the ledger's tree has to hear is of jobs that it has.
PARTS.outbox = function(q, cursor, size)
  return checking.each_member(q, K.Outbox, cursor, size, function(record)
    local r = job_at(q, record)
    if not r or extra_of(q, r).ledger == '' then
      checking.fault(q, 'outbox', checking.record(record) .. ' is to be told to a tree that has no such job', function()
        call('ZREM', q.prefix .. K.Outbox, record)
      end)
    end
  end)
end

local function check_counter(q, name, code, what, count)
  if q[name] ~= count then
    checking.fault(q, code, checking.whole(q[name]) .. ' ' .. what .. ' are counted, and there are '
      .. checking.whole(count), function() q[name] = count end)
  end
end

-- Of each submitter, the waiting jobs that do not count against it.
local function check_exempt(q, exempt)
  local key = q.prefix .. K.Exempt
  local flat, wrong = call('HGETALL', key), {}
  for i = 1, #flat, 2 do
    if tonumber(flat[i + 1]) ~= exempt[flat[i]] then wrong[flat[i]] = true end
  end
  for submitter in pairs(exempt) do
    if call('HEXISTS', key, submitter) == 0 then wrong[submitter] = true end
  end
  for submitter in pairs(wrong) do
    checking.fault(q, 'exempt', 'of ' .. submitter .. ' ' .. (exempt[submitter] or 0)
      .. ' waiting jobs do not count against it, and others are noted', function()
      if exempt[submitter] then
        call('HSET', key, submitter, exempt[submitter])
      else
        call('HDEL', key, submitter)
      end
    end)
  end
end

-- What is counted for the whole queue: space and exempt jobs only where the jobs are few enough to be counted again.
PARTS.counters = function(q)
  check_counter(q, 'flags', 'held', 'holds of many', call('HLEN', q.prefix .. K.Holds))
  check_counter(q, 'returning', 'held', 'holds that were taken away', call('LLEN', q.prefix .. K.Returning))
  check_counter(q, 'trash', 'batch-list', 'deleted batches', call('LLEN', q.prefix .. K.BatchTrash))
  local found = checking.recount(q)
  if found then
    check_counter(q, 'space_used', 'space', 'bytes of space', found.space)
    check_exempt(q, found.exempt)
  elseif q.space_used < 0 then
    checking.fault(q, 'space', 'less than no space is said to be taken')
  end
  return '', 1
end

verb.check_ledger = function(keys, args)
  return checking.page(PARTS, keys, args)
end
