-- Batches as they are kept: a head in `Batches` (and under s + id the submission, under r + id the last report), a row
-- for each job in `BatchRows.<id>`, in the order of `BatchJobs.<id>`. A batch that a call changes is written once, at
-- its end, when it has followed its jobs.
-- gives: batch

batch = {}

local BATCH = '<c1BdddI4I4ddddddddd'
local WORDS = 'Hc0Hc0Hc0I4c0Hc0Bc0'
local SEALED, SEALING, EXPANDING, UNSENT = 1, 2, 4, 8
local NOBODY = string.rep('\0', 8)
batch.NOBODY = NOBODY
-- From each state, the states that a batch may move to.
local MOVES = { p = 'wh', w = 'rh', h = 'pw', r = 'cf', c = '', f = 'u', u = 'cf' }

local function bit_of(flags, flag)
  return math.floor(flags / flag) % 2 == 1
end

function batch.number(id)
  return tonumber(string.sub(id, 4))
end

function batch.unfinished(b)
  return b.counts[1] + b.counts[2] + b.counts[3]
end

-- Its rows are fixed: from the step that begins a report until that report is stored.
function batch.is_frozen(b)
  return b.state == 'r' or (b.state == 'u' and batch.unfinished(b) == 0)
end

-- Whether a server has to expand or report it.
function batch.has_work(b)
  return (b.expanding and (b.state == 'p' or b.state == 'w')) or batch.is_frozen(b)
end

local function decode_batch(id, bytes)
  local state, flags, created, modified, aged, sequence, tries, try_at, locked, c1, c2, c3, c4, c5, c6, rows,
    external, submitter, profile, fault, owner, token = struct.unpack(BATCH .. WORDS, bytes)
  local b = { id = id, state = state, sealed = bit_of(flags, SEALED), sealing = bit_of(flags, SEALING),
    expanding = bit_of(flags, EXPANDING), unsent = bit_of(flags, UNSENT), created = created, modified = modified, aged = aged,
    sequence = sequence, tries = tries, try_at = try_at, locked = locked, counts = { c1, c2, c3, c4, c5, c6 },
    rows = rows, external = external, submitter = submitter, profile = profile, fault = fault, owner = owner,
    token = token, dirty = false, named = {} }
  b.was = { work = batch.has_work(b), unsent = b.unsent, try_at = try_at, aged = aged }
  return b
end

local function encode_batch(b)
  local flags = (b.sealed and SEALED or 0) + (b.sealing and SEALING or 0) + (b.expanding and EXPANDING or 0)
    + (b.unsent and UNSENT or 0)
  local c = b.counts
  return struct.pack(BATCH .. WORDS, b.state, flags, b.created, b.modified, b.aged, b.sequence, b.tries, b.try_at,
    b.locked, c[1], c[2], c[3], c[4], c[5], c[6], b.rows, #b.external, b.external, #b.submitter, b.submitter,
    #b.profile, b.profile, #b.fault, b.fault, #b.owner, b.owner, #b.token, b.token)
end

-- A batch by its id, or nil.
function batch.at(q, id)
  if id == '' then return nil end
  q.batches, q.rows = q.batches or {}, q.rows or {}
  local b = q.batches[id]
  if b == nil then
    local bytes = call('HGET', q.prefix .. K.Batches, id)
    b = bytes and decode_batch(id, bytes)
    q.batches[id] = b
  end
  return b or nil
end

-- Answers the code of a refusal if the table of states has no such move.
function batch.move(q, b, state)
  if b.state ~= state and not string.find(MOVES[b.state], state, 1, true) then
    return 'illegal-move:' .. b.state .. state
  end
  b.state, b.modified, b.dirty = state, q.now, true
end

-- 1 pending, 2 held, 3 processing, 4 failed, 5 completed, 6 deleted
function batch.bucket_of(r)
  if r.phase == 'E' then return string.byte(r.tail) > 0 and 4 or 5 end
  if r.phase == 'H' then return 2 end
  return r.stage == 0 and 1 or 3
end

-- A job is counted once, by the version that its row names.
local function is_counted(q, b, r)
  local known = b.named[r.key]
  if known == nil then
    local row = batch.row_at(q, b.id, r.id)
    known = row ~= nil and row.record == r.key
    b.named[r.key] = known
  end
  return known
end

function batch.count(q, id, r, by)
  local b = batch.at(q, id)
  if b and is_counted(q, b, r) then
    local bucket = batch.bucket_of(r)
    b.counts[bucket], b.dirty = b.counts[bucket] + by, true
  end
end

-- A job's row in a batch: its record ('\0…' if it was deleted), what is kept of it, and the state last reported.
function batch.row_at(q, id, job)
  local known = q.rows[id] and q.rows[id][job]
  if known then return known end
  local bytes = call('HGET', q.prefix .. K.BatchRows .. id, job)
  if not bytes then return nil end
  local record, reported, at = struct.unpack('<c8Bc0', bytes)
  return { record = record, reported = reported, label = string.sub(bytes, at), number = false }
end

-- Writes a row; a new one is the last.
function batch.set_row(q, b, job, record, label, reported)
  local known = batch.row_at(q, b.id, job)
  if not known then b.rows = b.rows + 1 end
  if known and known.record == NOBODY and record ~= NOBODY then b.counts[6] = b.counts[6] - 1 end
  if record == NOBODY and not (known and known.record == NOBODY) then b.counts[6] = b.counts[6] + 1 end
  q.rows[b.id] = q.rows[b.id] or {}
  q.rows[b.id][job] = { record = record, label = label, reported = reported,
    number = known and known.number or not known and b.rows }
  b.dirty, b.named = true, {}
end

local function write_rows(q, id, rows)
  local fields, order = {}, {}
  for job, row in pairs(rows) do
    fields[#fields + 1] = job
    fields[#fields + 1] = struct.pack('<c8Bc0', row.record, #row.reported, row.reported) .. row.label
    if row.number then
      order[#order + 1] = row.number
      order[#order + 1] = job
    end
  end
  for first = 1, #fields, 4000 do
    call('HSET', q.prefix .. K.BatchRows .. id, unpack(fields, first, math.min(first + 3999, #fields)))
  end
  for first = 1, #order, 4000 do
    call('ZADD', q.prefix .. K.BatchJobs .. id, unpack(order, first, math.min(first + 3999, #order)))
  end
end

-- A batch follows its jobs: it begins with the first, and its report begins when all have ended.
local function follow(q, b)
  if b.state == 'p' and (b.sealed or b.rows > 0) then b.state, b.modified = 'w', q.now end
  if b.state == 'w' and b.sealed and batch.unfinished(b) == 0 then b.state, b.modified = 'r', q.now end
end

-- Lists a batch by what is to be done for it.
local function list_batch(q, b)
  local work, was = batch.has_work(b), b.was
  if work ~= was.work then
    if work then
      call('ZADD', q.prefix .. K.BatchWork, batch.number(b.id), b.id)
    else
      call('ZREM', q.prefix .. K.BatchWork, b.id)
    end
  end
  if b.unsent ~= was.unsent or b.try_at ~= was.try_at then
    if b.unsent then
      call('ZADD', q.prefix .. K.BatchSend, b.try_at, b.id)
    else
      call('ZREM', q.prefix .. K.BatchSend, b.id)
    end
  end
  if b.aged ~= was.aged then call('ZADD', q.prefix .. K.BatchAge, b.aged, b.id) end
end

function batch.save(q)
  for id, b in pairs(q.batches) do
    if b and b.dirty then
      follow(q, b)
      list_batch(q, b)
      call('HSET', q.prefix .. K.Batches, id, encode_batch(b))
      tell.batch(q, id)
    end
  end
  for id, rows in pairs(q.rows) do
    if q.batches[id] then write_rows(q, id, rows) end
  end
  q.rows = {}
end
