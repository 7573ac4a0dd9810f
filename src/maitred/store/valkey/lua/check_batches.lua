-- check_batches: looks at one page of batches, their rows or their jobs for broken invariants, and repairs what it
-- finds if asked.
-- args: now, dice, part, cursor ('0' to begin), page size, '1' to repair
-- answers: as check does
-- flags: allow-oom
local PARTS = {}
local STATES = { p = 'pending', w = 'processing', h = 'held', r = 'reporting', c = 'completed', f = 'failed',
  u = 'update-reporting' }

local function is_trash(q, id)
  return call('LPOS', q.prefix .. K.BatchTrash, id) ~= false
end

-- Puts a job into a batch, or out of it, with the list that it is in when it has ended.
local function set_batch(q, r, id)
  local before = notices.list_of_ended(q, r)
  change_extra(q, r).batch = id
  if r.phase == 'E' then
    call('ZREM', q.prefix .. before, r.key)
    call('ZADD', q.prefix .. notices.list_of_ended(q, r), r.ended, r.key)
  end
end

-- The newest version of a job that is in this batch.
local function version_in(q, id, job)
  for _, r in ipairs(versions(q, job)) do
    if extra_of(q, r).batch == id then return r end
  end
end

-- Lists all rows of a batch anew, in the order that is known of them.
local function number_rows(q, b)
  local order, rows = q.prefix .. K.BatchJobs .. b.id, q.prefix .. K.BatchRows .. b.id
  if math.max(call('ZCARD', order), call('HLEN', rows)) > checking.MOST_RECOUNTED then return nil end
  return function()
    local count, seen, flat = 0, {}, {}
    local jobs = call('ZRANGE', order, 0, -1)
    for _, job in ipairs(call('HKEYS', rows)) do jobs[#jobs + 1] = job end
    for _, job in ipairs(jobs) do
      if not seen[job] and call('HEXISTS', rows, job) == 1 then
        count, seen[job] = count + 1, true
        flat[2 * count - 1], flat[2 * count] = count, job
      end
    end
    call('DEL', order)
    for first = 1, #flat, 4000 do call('ZADD', order, unpack(flat, first, math.min(first + 3999, #flat))) end
    b.rows, b.dirty = count, true
  end
end

-- Gives a job its row again; where its number is known it keeps it.
local function add_row(q, b, job)
  local listed = call('ZSCORE', q.prefix .. K.BatchJobs .. b.id, job)
  batch.set_row(q, b, job, version_in(q, b.id, job).key, '', '')
  if listed then
    b.rows, q.rows[b.id][job].number = b.rows - 1, false
  end
end

-- A job of a batch has a row there; that of a deleted one may be gone already.
PARTS.batch_jobs = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Jobs, cursor, size)
  local seen = 0
  for i = 1, #flat, 2 do
    local r = #flat[i] == 8 and decode_job(flat[i], flat[i + 1])
    if r then
      seen, q.jobs[r.key] = seen + 1, r
      -- Where the ledger is a tree, the batch is there, and is only a name here.
      local id = extra_of(q, r).ledger == '' and extra_of(q, r).batch or ''
      local b = batch.at(q, id)
      if id ~= '' and not b and not is_trash(q, id) then
        checking.fault(q, 'batch-row', checking.named(r) .. ' is of batch ' .. id .. ', which is not there', function()
          set_batch(q, r, '')
        end)
      elseif b and not batch.row_at(q, id, r.id) then
        checking.fault(q, 'batch-row', checking.named(r) .. ' is not listed by its batch ' .. id, function()
          add_row(q, b, r.id)
        end)
      end
    end
  end
  return next_cursor, seen
end

-- A row leads to a job of its batch, or says that it was deleted.
local function check_row(q, b, job)
  local row = batch.row_at(q, b.id, job)
  local r = row and row.record ~= batch.NOBODY and job_at(q, row.record)
  if not row or row.record == batch.NOBODY then return end
  if r and r.id == job and extra_of(q, r).batch == b.id then return end
  checking.fault(q, 'batch-row', 'batch ' .. b.id .. ' lists ' .. job .. ', which is not its job', function()
    local newest = version_in(q, b.id, job)
    if not newest and r and r.id == job and extra_of(q, r).batch == '' then
      set_batch(q, r, b.id)
      newest = r
    end
    batch.set_row(q, b, job, newest and newest.key or batch.NOBODY, row.label, row.reported)
  end)
end

PARTS.batch_rows = function(q, cursor, size)
  local name = q.prefix .. K.BatchJobs
  return checking.each_set(q, K.BatchJobs, cursor, size, function(key, jobs)
    local id = string.sub(key, #name + 1)
    local b = batch.at(q, id)
    if b then
      for _, job in ipairs(jobs) do check_row(q, b, job) end
    elseif not is_trash(q, id) then
      checking.fault(q, 'batch-row', 'there are rows of batch ' .. id .. ', which is not there', function()
        call('UNLINK', key, q.prefix .. K.BatchRows .. id)
      end)
    end
  end)
end

-- A batch is in each of these lists by this score, or not at all.
local function check_lists(q, b)
  local wanted = { [K.BatchList] = batch.number(b.id), [K.BatchAge] = b.aged,
    [K.BatchWork] = batch.has_work(b) and batch.number(b.id) or false, [K.BatchSend] = b.unsent and b.try_at or false }
  for name, score in pairs(wanted) do
    local found = call('ZSCORE', q.prefix .. name, b.id)
    if (found and tonumber(found) or false) ~= score then
      checking.fault(q, 'batch-list', 'batch ' .. b.id .. ' is not listed in ' .. name .. ' as it should be', function()
        if score then
          call('ZADD', q.prefix .. name, checking.whole(score), b.id)
        else
          call('ZREM', q.prefix .. name, b.id)
        end
      end)
    end
  end
  if b.external ~= '' and call('HGET', q.prefix .. K.BatchIds, b.external) ~= b.id then
    checking.fault(q, 'batch-list', 'batch ' .. b.id .. ' is not found by its external id', function()
      call('HSET', q.prefix .. K.BatchIds, b.external, b.id)
    end)
  end
  if call('HEXISTS', q.prefix .. K.Batches, 's' .. b.id) == 0 then
    checking.fault(q, 'body', 'batch ' .. b.id .. ' has lost its submission')
  end
end

-- The state that a batch with these counts should have, if it has another; with a flag, the hold that it should not have.
local function right_state(q, b, counts)
  local flag = 'batch:' .. b.id
  local flagged, begun = call('HEXISTS', q.prefix .. K.Holds, flag) == 1, b.sealed or b.rows > 0
  local ended = b.sealed and batch.unfinished({ counts = counts }) == 0
  if b.state == 'h' and not flagged then return begun and (ended and 'r' or 'w') or 'p' end
  if flagged and (b.state == 'p' or b.state == 'w') then return 'h' end
  if b.state == 'p' and begun then return ended and 'r' or 'w' end
  if b.state == 'w' and ended then return 'r' end
  if b.state == 'r' and not ended then return 'w' end
  if flagged and b.state ~= 'h' then return b.state, flag end
end

local function check_state(q, b, counts)
  local state, flag = right_state(q, b, counts)
  if not state then return end
  local text = 'batch ' .. b.id .. ' is ' .. STATES[b.state] .. ', and should be ' .. STATES[state]
  if flag then text = 'batch ' .. b.id .. ' is ' .. STATES[b.state] .. ', and there is a hold of it' end
  checking.fault(q, 'batch-state', text, function()
    if flag then lower_flag(q, flag) end
    b.state, b.modified, b.dirty = state, q.now, true
  end)
end

-- Heads of batches: the lists that they are in, their state, and how many rows they have.
PARTS.batches = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Batches, cursor, size)
  for i = 1, #flat, 2 do
    local field = flat[i]
    local b = string.sub(field, 1, 3) == 'bid' and batch.at(q, field)
    if b then
      local listed, kept = call('ZCARD', q.prefix .. K.BatchJobs .. b.id), call('HLEN', q.prefix .. K.BatchRows .. b.id)
      if listed ~= b.rows or kept ~= b.rows then
        checking.fault(q, 'batch-row', 'batch ' .. b.id .. ' is said to have ' .. b.rows .. ' rows; ' .. kept
          .. ' are kept and ' .. listed .. ' listed', number_rows(q, b))
      end
      check_lists(q, b)
    elseif not batch.at(q, string.sub(field, 2)) then
      checking.fault(q, 'batch-list', 'something is kept of batch ' .. string.sub(field, 2) .. ', which is not there', function()
        call('HDEL', q.prefix .. K.Batches, field)
      end)
    end
  end
  return next_cursor, #flat / 4
end

-- The version of a job that a batch counts: the one that its row names, or should name.
local function counted_version(q, id, job, record)
  local r = record and job_at(q, record)
  if r and r.id == job and extra_of(q, r).batch == id then return r end
  return version_in(q, id, job)
end

-- The jobs of a batch in each of its buckets, each once; nil if they are too many.
local function recount(q, b)
  if b.rows > checking.MOST_RECOUNTED then return nil end
  local counts, rows, records = { 0, 0, 0, 0, 0, 0 }, {}, {}
  for _, job in ipairs(call('ZRANGE', q.prefix .. K.BatchJobs .. b.id, 0, -1)) do rows[job] = false end
  local flat = call('HGETALL', q.prefix .. K.BatchRows .. b.id)
  for i = 1, #flat, 2 do
    local record = string.sub(flat[i + 1], 1, 8)
    rows[flat[i]] = record
    if record ~= batch.NOBODY then records[#records + 1] = record end
  end
  load_jobs(q, records)
  for job, record in pairs(rows) do
    local r = record ~= batch.NOBODY and counted_version(q, b.id, job, record)
    local bucket = r and batch.bucket_of(r) or record == batch.NOBODY and 6
    if bucket then counts[bucket] = counts[bucket] + 1 end
  end
  return counts
end

local function sums_fit(b)
  local jobs = 0
  for i = 1, 5 do
    if b.counts[i] < 0 then return false end
    jobs = jobs + b.counts[i]
  end
  return jobs + b.counts[6] == b.rows
end

local function check_counts(q, b)
  local counts = recount(q, b)
  local right = counts ~= nil or sums_fit(b)
  for i = 1, counts and 6 or 0 do right = right and counts[i] == b.counts[i] end
  if not right then
    checking.fault(q, 'batch-counts', 'batch ' .. b.id .. ' counts other jobs than it has', counts and function()
      b.counts, b.dirty = counts, true
    end)
  end
  return counts or b.counts
end

-- Counts and state of batches, for as many rows in a page as are counted in one step; the cursor is a batch's number.
PARTS.batch_counts = function(q, cursor, size)
  local rows, seen = 0, 0
  local ids = call('ZRANGEBYSCORE', q.prefix .. K.BatchList, cursor, '+inf', 'LIMIT', 0, size)
  for _, id in ipairs(ids) do
    local b = batch.at(q, id)
    if b then
      local more = math.min(b.rows, checking.MOST_RECOUNTED)
      if seen > 0 and rows + more > checking.MOST_RECOUNTED then return checking.whole(batch.number(id)), seen end
      rows = rows + more
      check_state(q, b, check_counts(q, b))
    end
    seen = seen + 1
  end
  return #ids == size and checking.whole(batch.number(ids[#ids]) + 1) or '', seen
end

-- What is listed is a batch.
local function check_list(name)
  return function(q, cursor, size)
    return checking.each_member(q, name, cursor, size, function(id)
      if not batch.at(q, id) then
        checking.fault(q, 'batch-list', 'batch ' .. id .. ' is listed in ' .. name .. ' and is not there', function()
          call('ZREM', q.prefix .. name, id)
        end)
      end
    end)
  end
end

PARTS.batch_list, PARTS.batch_age = check_list(K.BatchList), check_list(K.BatchAge)
PARTS.batch_work, PARTS.batch_send = check_list(K.BatchWork), check_list(K.BatchSend)

PARTS.batch_ids = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.BatchIds, cursor, size)
  for i = 1, #flat, 2 do
    local b = batch.at(q, flat[i + 1])
    if not b or b.external ~= flat[i] then
      checking.fault(q, 'batch-list', 'external id ' .. flat[i] .. ' leads to a batch that has not got it', function()
        call('HDEL', q.prefix .. K.BatchIds, flat[i])
      end)
    end
  end
  return next_cursor, #flat / 2
end

-- A hold of a batch is of one that is there, unless batches are only names here.
PARTS.batch_holds = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Holds, cursor, size)
  for i = 1, #flat, 2 do
    local id = string.match(flat[i], '^batch:(.*)$')
    if id and q.settings.ledger == '' and not batch.at(q, id) then
      checking.fault(q, 'batch-state', 'there is a hold of batch ' .. id .. ', which is not there', function()
        lower_flag(q, flat[i])
      end)
    end
  end
  return next_cursor, #flat / 2
end

verb.check_batches = function(keys, args)
  return checking.page(PARTS, keys, args)
end
