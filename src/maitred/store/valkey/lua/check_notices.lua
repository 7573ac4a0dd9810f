-- check_notices: looks at one page of what submitters are to be told, and of the jobs that are given up when nobody
-- watches them, for broken invariants, and repairs what it finds if asked.
-- args: now, dice, part, cursor ('0' to begin), page size, '1' to repair
-- answers: as check does
-- flags: allow-oom
local PARTS = {}

local function length_of(q, id)
  return call('LLEN', q.prefix .. K.Notices .. id)
end

local function check_untold(q, r, list)
  local untold = 0
  for _, bytes in ipairs(list) do
    if string.sub(bytes, 1, 8) == r.key then untold = untold + 1 end
  end
  local said = extra_of(q, r).untold
  if said ~= untold then
    checking.fault(q, 'notices', checking.named(r) .. ' says that ' .. checking.whole(said)
      .. ' notices are untold, and there are ' .. untold, function() notices.set_untold(q, r, untold) end)
  end
end

local function check_list(q, key, id)
  local list, looked_at = call('LRANGE', key, 0, -1), {}
  for _, bytes in ipairs(list) do
    local record = string.sub(bytes, 1, 8)
    local r = job_at(q, record)
    if r and r.id == id then
      if not looked_at[record] then check_untold(q, r, list) end
      looked_at[record] = true
    else
      checking.fault(q, 'notices', checking.record(record) .. ' has a notice of job ' .. id .. ', which is not its own',
        function() call('LREM', key, 1, bytes) end)
    end
  end
  if length_of(q, id) > 0 and not call('ZSCORE', q.prefix .. K.NoticesDue, id) then
    checking.fault(q, 'notices', 'job ' .. id .. ' has notices that would never be told', function()
      call('ZADD', q.prefix .. K.NoticesDue, q.now_text, id)
    end)
  end
end

-- What is to be told is of jobs that are kept, and has its moment.
PARTS.notices = function(q, cursor, size)
  local name = q.prefix .. K.Notices
  local got = call('SCAN', cursor, 'MATCH', name .. '*', 'COUNT', size)
  for _, key in ipairs(got[2]) do check_list(q, key, string.sub(key, #name + 1)) end
  return got[1] == '0' and '' or got[1], #got[2]
end

local function check_nothing_to_tell(q, id, what)
  if length_of(q, id) == 0 then
    checking.fault(q, 'notices', 'job ' .. id .. what .. ' and has none', function() notices.drop(q, id) end)
  end
end

PARTS.notices_due = function(q, cursor, size)
  return checking.each_member(q, K.NoticesDue, cursor, size, function(id)
    check_nothing_to_tell(q, id, ' is listed for its notices')
  end)
end

PARTS.notice_heads = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.NoticeHeads, cursor, size)
  for i = 1, #flat, 2 do check_nothing_to_tell(q, flat[i], ' has a lock on its notices') end
  return next_cursor, #flat / 2
end

local function check_deadline(q, r)
  if r.phase ~= 'E' and extra_of(q, r).abandon > 0 and not call('ZSCORE', q.prefix .. K.Abandon, r.key) then
    checking.fault(q, 'abandon', checking.named(r) .. ' would never be given up', function()
      notices.set_deadline(q, r)
    end)
  end
end

-- Jobs know how much they have to tell, those that ask for it are given up in time, and a log has its job.
PARTS.telling_jobs = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Jobs, cursor, size)
  local seen = 0
  for i = 1, #flat, 2 do
    local field = flat[i]
    if #field == 8 then
      local r = decode_job(field, flat[i + 1])
      seen, q.jobs[r.key] = seen + 1, r
      if has(r, EXTRA) then
        if extra_of(q, r).untold > 0 then check_untold(q, r, call('LRANGE', q.prefix .. K.Notices .. r.id, 0, -1)) end
        check_deadline(q, r)
      end
    elseif #field == 9 and string.sub(field, 1, 1) == 'n' and not job_at(q, string.sub(field, 2)) then
      checking.fault(q, 'notices', checking.record(string.sub(field, 2)) .. ' has a log of deliveries and is not kept',
        function() call('HDEL', q.prefix .. K.Jobs, field) end)
    end
  end
  return next_cursor, seen
end

PARTS.abandon = function(q, cursor, size)
  return checking.each_member(q, K.Abandon, cursor, size, function(record)
    local r = job_at(q, record)
    if not r or r.phase == 'E' or extra_of(q, r).abandon == 0 then
      checking.fault(q, 'abandon', checking.record(record) .. ' would be given up and does not ask for it', function()
        call('ZREM', q.prefix .. K.Abandon, record)
      end)
    end
  end)
end

-- Nobody is given up later than the queue looks.
PARTS.abandon_next = function(q)
  local first = tonumber(call('ZRANGE', q.prefix .. K.Abandon, 0, 0, 'WITHSCORES')[2]) or NEVER
  if q.abandon_at > first then
    checking.fault(q, 'abandon', 'a job would be given up too late', function() q.abandon_at = first end)
  end
  return '', 1
end

verb.check_notices = function(keys, args)
  return checking.page(PARTS, keys, args)
end
