-- One call's view of the queue. `open` reads the floor, the settings and the crews in one command; jobs and
-- places that change are gathered and written together by `flush` and `close`.

-- gives: new_floor, remember, read_lanes, read_settings, read_crews, limits_of, open, next_seq, extra_of, change_extra, must_say, count_of, counted, hmget, take_out, load_jobs, load_whole, job_at, new_job, touch, forget, add, flush, write_hash, write_ids, close, send, newest_of, versions

local FLOOR, FLOOR_SIZE = '<ddddddddddddddddddddddd', 184
local formats, memo = {}, {}

local function doubles(count)
  local format = formats[count]
  if not format then
    format = '<' .. string.rep('d', count)
    formats[count] = format
  end
  return format
end

local function remember(text, read)
  local value = memo[text]
  if value == nil then
    if memo.size and memo.size > 256 then memo = {} end
    memo.size = (memo.size or 0) + 1
    value = read(text)
    memo[text] = value
  end
  return value
end

local function read_crews(text)
  local crews = { list = cjson.decode(text), by_need = {} }
  for crew, needs in pairs(crews.list) do
    for _, need in ipairs(needs) do
      local serving = crews.by_need[need] or {}
      serving[#serving + 1] = crew
      crews.by_need[need] = serving
    end
  end
  for _, serving in pairs(crews.by_need) do table.sort(serving) end
  return crews
end

-- The keys of each lane of one queue, as they are asked for.
local function keys_cache()
  return {}
end

-- The lanes that may have a place, in order of band and priority, and by name.
local function read_lanes(text)
  local lanes = { list = {}, by_name = {} }
  for i, name in ipairs(cjson.decode(text)) do
    local band = tonumber(string.sub(name, 1, 1))
    local level, need = string.match(name, '^%d%.%d%d%.(%d+)%.(.*)$')
    local lane = { name = name, band = band, group = band * 100 + tonumber(string.sub(name, 3, 4)),
      level = tonumber(level), need = need, bare = need, lacking = false }
    if string.sub(need, 1, 1) == BLOCKED_NEED then lane.bare = string.sub(need, 2) end
    if string.sub(lane.bare, 1, 1) == LACKING_NEED then
      local blocked = lane.bare ~= need
      lane.lacking, lane.bare = true, string.sub(lane.bare, 2)
      if not blocked then lane.need = lane.bare end
    end
    lanes.list[i] = lane
    lanes.by_name[name] = lane
  end
  return lanes
end

-- The settings, with the caps of the classes; a queue without classes has one, with its time limit.
local function read_settings(text)
  local settings = cjson.decode(text)
  settings.caps, settings.limits, settings.borrow = {}, { size = 0 }, settings.elastic == 'borrow'
  for k, class in ipairs(settings.classes) do settings.caps[k] = class[2] end
  if #settings.caps == 0 then settings.caps[1] = settings.time_limit end
  settings.staged = #settings.stages > 1 or settings.stages[1] ~= DEFAULT_STAGE
  settings.provisioning = 0
  for i, stage in ipairs(settings.stages) do
    if stage == PROVISIONING and settings.space > 0 then settings.provisioning = i end
  end
  return settings
end

-- The limit of each level for the live slots there are.
local function limits_of(q)
  local known, slots = q.settings.limits, q.slots
  local found = known[slots]
  if found then return found end
  if known.size > 256 then
    known = { size = 0 }
    q.settings.limits = known
  end
  found = { slots }
  local part = C.WHOLE
  for k = 2, #q.settings.caps do
    local limit = q.settings.classes[k][3]
    local wanted
    if limit == cjson.null then
      wanted = found[k - 1]
    elseif limit[2] then
      wanted = math.floor((2 * found[k - 1] * limit[1] + part) / (2 * part))
      part = limit[1]
    else
      wanted, part = limit[1], C.WHOLE
    end
    found[k] = math.min(found[k - 1], math.max(1, wanted))
  end
  known[slots], known.size = found, known.size + 1
  return found
end

local function clock(argument)
  local given = tonumber(argument)
  if given and given > 0 then return given end
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

local function open(keys, args)
  local key = keys[1]
  local prefix = string.sub(key, 1, #key - #K.Floor)
  local got = call('MGET', key, prefix .. K.Settings, prefix .. K.Crews, prefix .. K.Lanes)
  if not got[1] then return nil, redis.error_reply('NOQUEUE there is no such queue') end
  local schema, seq, last, waiting, paused, free, due_at, expiry_at, lease_at, alarm,
    slots, stops, halts, elastics, cut_at, listened_until, told, flags, returning, space_used, batches_made,
    trash, abandon_at = struct.unpack(FLOOR, got[1])
  if schema ~= C.SCHEMA then
    return nil, redis.error_reply('SCHEMA the store has schema ' .. schema .. ', this is ' .. C.SCHEMA)
  end
  local settings = remember(got[2], read_settings)
  local levels = #settings.caps
  local used = { struct.unpack(doubles(levels), got[1], FLOOR_SIZE + 1) }
  local counts = { struct.unpack(doubles(#got[1] / 8 - FLOOR_SIZE / 8 - levels), got[1], used[levels + 1]) }
  used[levels + 1], counts[#counts] = nil, nil
  local now = math.max(clock(args[1]), last)
  return { prefix = prefix, now = now, now_text = string.format('%d', now), dice = args[2],
    seq = seq, waiting = waiting, paused = paused == 1, free = free, due_at = due_at, expiry_at = expiry_at,
    lease_at = lease_at, alarm = alarm, slots = slots, stops = stops, halts = halts, elastics = elastics,
    cut_at = cut_at, listened_until = listened_until, told = told, news = now < listened_until and {}, used = used,
    counts = counts, more = false, overdue_at = NEVER, flags = flags, returning = returning, space_used = space_used,
    batches_made = batches_made, trash = trash, abandon_at = abandon_at, noticed = false, batches = false,
    rows = false, extras = false, data = false, unlinked = false,
    settings = settings, crews = remember(got[3] or '{}', read_crews),
    lanes = remember(got[4] or '[]', read_lanes), keys_of_lane = remember(prefix, keys_cache),
    jobs = {}, dirty = {}, bodies = {}, adds = {}, sent = {}, ids = {} }
end

-- The floor of a queue that is made now, with room for so many counts.
local function new_floor(size)
  local counts = {}
  for i = 1, size do counts[i] = 0 end
  return struct.pack(FLOOR, C.SCHEMA, 0, 0, 0, 0, 0, NEVER, NEVER, NEVER, NEVER, 0, 0, 0, 0, NEVER, 0, 0, 0, 0, 0, 0, 0,
    NEVER) .. struct.pack(doubles(size), unpack(counts))
end

local function next_seq(q)
  q.seq = math.max(q.seq + 1, q.now)
  return q.seq
end

-- counts: 1 pending, 2 held, 3 failed, 4 completed, 4 + n stage n
local function count_of(r)
  if r.phase == 'E' then return string.byte(r.tail) > 0 and 3 or 4 end
  if r.phase == 'H' then return 2 end
  return r.stage == 0 and 1 or 4 + r.stage
end

-- What only some jobs have; not to be changed here. A job for which it was lost goes on without.
local function extra_of(q, r)
  if r.flags < EXTRA then return NO_EXTRA end
  if not r.extra then
    local bytes = call('HGET', q.prefix .. K.Jobs, 'x' .. r.key)
    if not bytes then
      mark(r, EXTRA, false)
      return NO_EXTRA
    end
    r.extra = decode_extra(bytes)
  end
  return r.extra
end

-- The same, to be changed.
local function change_extra(q, r)
  if not has(r, EXTRA) then
    r.extra = {}
    for name, value in pairs(NO_EXTRA) do r.extra[name] = value end
    mark(r, EXTRA, true)
  end
  q.extras = q.extras or {}
  q.extras[r.key] = r
  q.dirty[#q.dirty + 1] = r
  return extra_of(q, r)
end

-- The ledger's tree has to hear of a job's new state, where there is one.
local function must_say(q, r)
  if has(r, EXTRA) and extra_of(q, r).ledger ~= '' then call('ZADD', q.prefix .. K.Outbox, r.record, r.key) end
end

local function counted(q, r, by)
  local i = count_of(r)
  q.counts[i] = (q.counts[i] or 0) + by
  if r.flags >= EXTRA then
    local x = extra_of(q, r)
    if x.batch ~= '' and x.ledger == '' then batch.count(q, x.batch, r, by) end
  end
end

-- Lua cannot pass more than some thousand values at once: long lists go in pieces.
local PIECE = 1000

local function hmget(key, fields)
  if #fields <= PIECE then return call('HMGET', key, unpack(fields)) end
  local got = {}
  for first = 1, #fields, PIECE do
    local last = math.min(first + PIECE - 1, #fields)
    for i, value in ipairs(call('HMGET', key, unpack(fields, first, last))) do got[first + i - 1] = value end
  end
  return got
end

local function take_out(command, key, members)
  local count = 0
  for first = 1, #members, PIECE do
    count = count + call(command, key, unpack(members, first, math.min(first + PIECE - 1, #members)))
  end
  return count
end

local function load_jobs(q, records)
  local missing = {}
  for _, record in ipairs(records) do
    if q.jobs[record] == nil then missing[#missing + 1] = record end
  end
  if #missing == 0 then return end
  local got = hmget(q.prefix .. K.Jobs, missing)
  for i, record in ipairs(missing) do
    q.jobs[record] = got[i] and decode_job(record, got[i])
  end
end

-- Jobs with their bodies and, where there are stages, what those handed on, in one command: answers both in order.
local function load_whole(q, records)
  local fields, width = {}, q.settings.staged and 3 or 2
  for i, record in ipairs(records) do
    local at = width * (i - 1)
    fields[at + 1] = record
    fields[at + 2] = 'b' .. record
    if width == 3 then fields[at + 3] = 'd' .. record end
  end
  local got, bodies, data = hmget(q.prefix .. K.Jobs, fields), {}, {}
  for i, record in ipairs(records) do
    local at = width * (i - 1)
    local bytes = got[at + 1]
    if q.jobs[record] == nil then q.jobs[record] = bytes and decode_job(record, bytes) end
    bodies[i] = q.bodies[record] or got[at + 2] or ''
    data[i] = q.data and q.data[record] or width == 3 and got[at + 3] or ''
  end
  return bodies, data
end

-- A job by its 8-byte record key, or nil.
local function job_at(q, record)
  local r = q.jobs[record]
  if r == nil then
    local bytes = call('HGET', q.prefix .. K.Jobs, record)
    r = bytes and decode_job(record, bytes)
    q.jobs[record] = r
  end
  return r or nil
end

-- The record of a job that is made now; its id leads to it, and its body is kept.
local function new_job(q, id, submitter, need, band, body)
  local record = next_seq(q)
  local key = key8(record)
  local r = { key = key, record = record, phase = 'W', stage = 0, band = band, priority = C.DEFAULT_PRIORITY, level = 1,
    flags = 0, version = 1, attempt = 0, unspent = 0, retries = 0, recent = -1, created = q.now, release = q.now,
    arrival = record, expires = 0, delay = 0, ended = 0, previous = 0, duration = 0, id = id, submitter = submitter,
    need = need, worker = '', tail = NO_END, saved = false, gone = false, extra = false }
  q.jobs[key], q.bodies[key] = r, body
  q.ids[#q.ids + 1] = id
  q.ids[#q.ids + 1] = key
  counted(q, r, 1)
  return r
end

local function touch(q, r)
  q.dirty[#q.dirty + 1] = r
end

local function forget(q, r)
  local record = r.key
  r.gone = true
  q.jobs[record] = false
  q.bodies[record] = nil
  if q.extras then q.extras[record] = nil end
  if q.data then q.data[record] = nil end
  call('HDEL', q.prefix .. K.Jobs, record, 'b' .. record)
  q.unlinked = q.unlinked or {}
  q.unlinked[#q.unlinked + 1] = q.prefix .. K.Output .. record
  if has(r, EXTRA) then q.unlinked[#q.unlinked + 1] = q.prefix .. K.Artifacts .. record end
  if has(r, EXTRA) or q.settings.staged then
    call('HDEL', q.prefix .. K.Jobs, 'x' .. record, 'd' .. record, 'n' .. record)
  end
end

-- Gathers what is added to a sorted set, for one command each. A score is given as text: the server would print
-- a number as a fraction, which takes it as long as the insertion.
local function add(q, key, score, member)
  local list = q.adds[key]
  if list then
    local count = #list
    list[count + 1] = score
    list[count + 2] = member
  else
    q.adds[key] = { score, member }
  end
end

local function flush(q)
  local adds = q.adds
  if next(adds) == nil then return end
  q.adds = {}
  for key, list in pairs(adds) do
    local count = #list
    if count == 2 then
      call('ZADD', key, list[1], list[2])
    else
      for first = 1, count, 4000 do call('ZADD', key, unpack(list, first, math.min(first + 3999, count))) end
    end
  end
end

local function write_hash(key, pairs_list)
  for first = 1, #pairs_list, 4000 do
    call('HSET', key, unpack(pairs_list, first, math.min(first + 3999, #pairs_list)))
  end
end

local function write_ids(q)
  if #q.ids > 0 then
    write_hash(q.prefix .. K.Ids, q.ids)
    q.ids = {}
  end
end

local function close(q)
  flush(q)
  local jobs, count = {}, 0
  for _, r in ipairs(q.dirty) do
    if not r.gone and not r.saved then
      r.saved = true
      jobs[count + 1] = r.key
      jobs[count + 2] = encode_job(r)
      count = count + 2
    end
  end
  for record, body in pairs(q.bodies) do
    jobs[count + 1] = 'b' .. record
    jobs[count + 2] = body
    count = count + 2
  end
  for record, r in pairs(q.extras or NOTHING) do
    jobs[count + 1] = 'x' .. record
    jobs[count + 2] = encode_extra(r.extra)
    count = count + 2
  end
  for record, data in pairs(q.data or NOTHING) do
    jobs[count + 1] = 'd' .. record
    jobs[count + 2] = data
    count = count + 2
  end
  if count > 0 then write_hash(q.prefix .. K.Jobs, jobs) end
  write_ids(q)
  if q.batches then batch.save(q) end
  for first = 1, #(q.unlinked or NOTHING), PIECE do
    call('UNLINK', unpack(q.unlinked, first, math.min(first + PIECE - 1, #q.unlinked)))
  end
  for worker, messages in pairs(q.sent) do
    call('RPUSH', q.prefix .. K.Inbox .. worker, unpack(messages))
  end
  for i = #q.counts + 1, 4 + #q.settings.stages do q.counts[i] = 0 end
  tell.publish(q)
  call('SET', q.prefix .. K.Floor, struct.pack(FLOOR, C.SCHEMA, q.seq, q.now, q.waiting, q.paused and 1 or 0, q.free,
    q.due_at, q.expiry_at, q.lease_at, q.alarm, q.slots, q.stops, q.halts, q.elastics, q.cut_at, q.listened_until,
    q.told, q.flags, q.returning, q.space_used, q.batches_made, q.trash, q.abandon_at)
    .. struct.pack(doubles(#q.used), unpack(q.used)) .. struct.pack(doubles(#q.counts), unpack(q.counts)))
end

local function send(q, worker, message)
  local list = q.sent[worker]
  if not list then
    list = {}
    q.sent[worker] = list
  end
  list[#list + 1] = message
end

-- The newest version of a job, or nil.
local function newest_of(q, id)
  local record = call('HGET', q.prefix .. K.Ids, id)
  return record and job_at(q, record) or nil
end

-- All kept versions of a job, newest first.
local function versions(q, id)
  local list, r = {}, newest_of(q, id)
  while r do
    list[#list + 1] = r
    r = r.previous > 0 and job_at(q, key8(r.previous)) or nil
  end
  return list
end
