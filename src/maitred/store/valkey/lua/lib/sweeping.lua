-- What is forgotten after a while: jobs that ended, batches that were reported, and what is left of deleted ones.
-- gives: sweep, discard_batch, empty_trash

-- Takes an ended version out of its job's chain of versions.
local function unlink(q, r)
  local newest = call('HGET', q.prefix .. K.Ids, r.id)
  local older = r.previous > 0 and job_at(q, key8(r.previous))
  if newest == r.key then
    if older then
      call('HSET', q.prefix .. K.Ids, r.id, key8(r.previous))
    else
      call('HDEL', q.prefix .. K.Ids, r.id)
    end
  elseif older then
    local newer = newest and job_at(q, newest)
    while newer and newer.previous ~= r.record do
      newer = newer.previous > 0 and job_at(q, key8(newer.previous))
    end
    if newer then
      newer.previous = r.previous
      touch(q, newer)
    end
  end
end

local function drop(q, r)
  counted(q, r, -1)
  if has(r, EXTRA) and extra_of(q, r).ledger ~= '' then
    call('ZREM', q.prefix .. K.Outbox, r.key)
    call('RPUSH', q.prefix .. K.Gone, extra_of(q, r).ledger)
  end
  unlink(q, r)
  forget(q, r)
end

-- Makes a batch unknown; its jobs go step by step.
local function discard_batch(q, b)
  lower_flag(q, 'batch:' .. b.id)
  q.batches[b.id], q.rows[b.id] = false, nil
  call('HDEL', q.prefix .. K.Batches, b.id, 's' .. b.id, 'r' .. b.id)
  for _, name in ipairs({ K.BatchWork, K.BatchSend, K.BatchAge, K.BatchList }) do call('ZREM', q.prefix .. name, b.id) end
  if b.external ~= '' then call('HDEL', q.prefix .. K.BatchIds, b.external) end
  if b.rows > 0 then
    call('RPUSH', q.prefix .. K.BatchTrash, b.id)
    q.trash = q.trash + 1
  end
  tell.batch(q, b.id)
end

-- The versions of a job that were in a deleted batch go with it; one that runs again is outside of it, as is one that has
-- something to tell first.
local function drop_row(q, id, job)
  local all = versions(q, job)
  for _, r in ipairs(all) do
    if extra_of(q, r).batch == id then
      if r.phase == 'E' and extra_of(q, r).untold == 0 then
        call('ZREM', q.prefix .. K.Kept, r.key)
        drop(q, r)
      else
        change_extra(q, r).batch = ''
      end
    end
  end
end

local function empty_trash(q, most)
  flush(q)
  while q.trash > 0 and most > 0 do
    local id = call('LINDEX', q.prefix .. K.BatchTrash, 0)
    local order = q.prefix .. K.BatchJobs .. id
    local jobs = call('ZRANGE', order, 0, most - 1)
    for _, job in ipairs(jobs) do drop_row(q, id, job) end
    if #jobs > 0 then
      call('ZREMRANGEBYRANK', order, 0, #jobs - 1)
      take_out('HDEL', q.prefix .. K.BatchRows .. id, jobs)
    end
    most = most - #jobs
    if call('EXISTS', order) == 0 then
      call('LPOP', q.prefix .. K.BatchTrash)
      call('DEL', q.prefix .. K.BatchRows .. id)
      q.trash = q.trash - 1
    end
  end
end

-- Seals what was left open for long, and forgets what was reported long ago.
local function sweep_batches(q, limit)
  empty_trash(q, limit)
  if q.batches_made == 0 then return end
  local old = call('ZRANGEBYSCORE', q.prefix .. K.BatchAge, '-inf', q.now - q.settings.retention, 'LIMIT', 0,
    C.BATCHES_PER_SWEEP)
  for _, id in ipairs(old) do
    local b = batch.at(q, id)
    if b then
      b.aged, b.dirty = q.now, true
      if not b.sealed and not b.expanding then
        b.sealed, b.modified = true, q.now
      elseif b.sequence > 0 and batch.unfinished(b) == 0 and not batch.is_frozen(b) and not b.unsent then
        discard_batch(q, b)
      end
    end
  end
end

-- Forgets jobs that ended longer ago than the retention, at most `limit`, oldest first; those of batches go with them.
local function sweep(q, limit)
  sweep_batches(q, limit)
  flush(q)
  local key = q.prefix .. K.Ended
  local old = call('ZRANGEBYSCORE', key, '-inf', q.now - q.settings.retention, 'LIMIT', 0, limit)
  if #old == 0 then return 0 end
  load_jobs(q, old)
  for _, record in ipairs(old) do
    local r = q.jobs[record]
    if r then drop(q, r) end
  end
  take_out('ZREM', key, old)
  return #old
end
