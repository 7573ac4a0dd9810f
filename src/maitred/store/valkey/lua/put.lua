-- put: creates or updates jobs, one or many, and seats whoever can be seated.
-- args: now, dice, then two for each job: its order (packed, see records.py) and its body
-- answers: {next_at, one entry per job: {outcome, record, version} or the code of a refusal}
-- flags:
local ORDER = '<BBBBddBdHc0Hc0Hc0'
local LEDGER = '<Hc0Hc0I4c0Bc0Hc0d'
local POLICY_FLOOR, FOR_LEDGER, ORDER_EXEMPT, ONLY_NEW, CALLBACK, ABANDON = 1, 2, 4, 8, 16, 32

local function flagged(flags, flag)
  return math.floor(flags / flag) % 2 == 1
end

-- Most orders have nothing for the ledger, and are spared the reading of it.
local function read_order(bytes)
  local band, priority, level, elastic, duration, delay, flags, expires, id, submitter, need, at =
    struct.unpack(ORDER, bytes)
  local o = { band = band, priority = priority, level = level, elastic = elastic, duration = duration, delay = delay,
    policy_floor = flags % 2 == POLICY_FLOOR, expires = expires, id = id, submitter = submitter, need = need,
    batch = '', exempt = false, only_new = false, more = false, callback = 0, abandon = 0 }
  if flags >= CALLBACK then
    o.callback = flagged(flags, CALLBACK) and 1 or 0
    if flagged(flags, ABANDON) then o.abandon, at = struct.unpack('<d', bytes, at) end
  end
  if flagged(flags, FOR_LEDGER) then
    o.more, o.exempt, o.only_new = true, flagged(flags, ORDER_EXEMPT), flagged(flags, ONLY_NEW)
    o.batch, o.profile, o.label, o.token, o.ledger, o.status = struct.unpack(LEDGER, bytes, at)
  end
  return o
end

local function describe(q, r, o, body)
  r.need, r.priority, r.level, r.duration, r.expires = o.need, o.priority, o.level, o.duration, o.expires
  r.attempt, r.unspent = 0, 0
  mark(r, ELASTIC, o.elastic == 1)
  q.bodies[r.key] = body
  touch(q, r)
  if o.callback > 0 or o.abandon > 0 or r.flags >= EXTRA then notices.describe(q, r, o.callback, o.abandon) end
  if q.news then tell.changed(q, r) end
end

local function place_anew(q, r, o, arrival)
  r.band = o.band
  r.delay, r.recent = delay_of(q, o)
  r.release, r.arrival = q.now + r.delay, arrival
  if q.settings.provisioning > 0 then mark(r, LACKING, lacks_space(q, r)) end
end

local function arrive(q, r, o)
  if o.band < SCHEDULED then
    join_own(q, r)
  else
    join_line(q, r)
  end
  note_recent(q, o, r.arrival)
end

-- The time that nobody can cut: an elastic job is sure of the fastest cap only.
local function sure_of(q, elastic, duration, level)
  local caps = q.settings.caps
  if elastic then return caps[1] end
  return duration > 0 and duration or caps[level]
end

-- Updates a job that has no place; a better band counts when it comes back.
local function update_held(q, r, o, body)
  describe(q, r, o, body)
  if o.band >= r.band then return { 'updated', r.record, r.version } end
  place_anew(q, r, o, next_seq(q))
  mark(r, LACKING, false)
  note_recent(q, o, r.arrival)
  return { 'upgraded', r.record, r.version }
end

local function update(q, r, o, body)
  if sure_of(q, o.elastic == 1, o.duration, o.level) > sure_of(q, has(r, ELASTIC), r.duration, r.level) then
    return 'longer-duration'
  end
  if o.more and o.ledger ~= '' and o.ledger == extra_of(q, r).ledger then
    change_extra(q, r).status = o.status
  end
  if q.settings.staged and r.stage > 0 then o.need = r.need end
  if r.phase == 'H' then return update_held(q, r, o, body) end
  if o.band < r.band then
    leave_line(q, r)
    describe(q, r, o, body)
    place_anew(q, r, o, next_seq(q))
    mark(r, BLOCKED, is_blocked(q, r.id))
    arrive(q, r, o)
    return { 'upgraded', r.record, r.version }
  end
  if lane_name(r.band, o.priority, o.level, need_of(r, o.need)) ~= lane_of(r) then
    leave_line(q, r)
    describe(q, r, o, body)
    join_own(q, r)
  else
    flush(q)
    if r.expires > 0 and o.expires == 0 then
      call('ZREM', q.prefix .. K.Expiry, r.key)
    elseif o.expires > 0 then
      add(q, q.prefix .. K.Expiry, string.format('%d', o.expires), r.key)
      q.expiry_at = math.min(q.expiry_at, o.expires)
    end
    describe(q, r, o, body)
  end
  return { 'updated', r.record, r.version }
end

local function full(q, o)
  if q.waiting >= q.settings.max_total then return 'full-total' end
  if not o.exempt and q.waiting >= q.settings.max_per_submitter
    and waiting_of(q, o.submitter) >= q.settings.max_per_submitter then
    return 'full-per_submitter'
  end
end

-- The newest version that has not ended; an older one may run on where the newest has ended already.
local function unended(q, r)
  if r and r.phase ~= 'E' then return r end
  if not r or not has(r, OLDER) then return nil end
  repeat
    r = r.previous > 0 and job_at(q, key8(r.previous)) or nil
  until not r or r.phase ~= 'E'
  return r
end

-- A job of the ledger's tree that is here is passed over, or another that waits for its key; news of it counts.
local function known_in_ledger(q, o, newest)
  local waits = newest and (newest.phase == 'W' or newest.phase == 'H')
  local r = newest
  while r and extra_of(q, r).ledger ~= o.ledger do r = r.previous > 0 and job_at(q, key8(r.previous)) or nil end
  if not r and waits and extra_of(q, newest).ledger ~= '' then return { 'known', newest.record, newest.version } end
  if not r or (waits and r == newest and o.status > extra_of(q, r).status) then return nil end
  return { 'known', r.record, r.version }
end

-- A key that the batch has is passed over by those that only create.
local function known_row(q, o)
  local row = batch.at(q, o.batch) and batch.row_at(q, o.batch, o.id)
  if not row then return nil end
  local r = job_at(q, row.record)
  return { 'known', number8(row.record), r and r.version or 0 }
end

-- What forbids this PUT because of the batch that it names, or that its job is in.
local function not_for_batch(q, o, old, live)
  local mine = old and has(old, EXTRA) and batch.at(q, extra_of(q, old).batch)
  if mine and batch.is_frozen(mine) then return 'reporting' end
  -- Where the ledger is a tree, the batch is there, and is only a name here.
  if o.batch == '' or o.ledger ~= '' then return nil end
  local b = batch.at(q, o.batch)
  if not b then return 'no-batch' end
  if o.token ~= '' and b.token ~= o.token then return 'lock-lost' end
  if live then
    if extra_of(q, live).batch ~= o.batch or o.only_new then return 'other-batch' end
    return nil
  end
  -- Once it is to be sealed, only the server that expands it adds jobs.
  return (b.sealed or (b.sealing and o.token == '')) and 'sealed' or nil
end

-- Puts a new job into its batch; a new version stays in that of the last until it is reported.
local function enlist(q, r, o, old)
  local before = old and has(old, EXTRA) and batch.at(q, extra_of(q, old).batch)
  local b = batch.at(q, o.batch) or (before and before.sequence == 0 and before)
  if o.more and o.ledger ~= '' then
    if o.batch ~= '' then change_extra(q, r).batch = o.batch end
    return
  end
  if not b then return end
  local row = batch.row_at(q, b.id, r.id)
  local before_it = row and job_at(q, row.record)
  if before_it then batch.count(q, b.id, before_it, -1) end
  change_extra(q, r).batch = b.id
  batch.set_row(q, b, r.id, r.key, o.more and o.label ~= '' and o.label or row and row.label or '', '')
  batch.count(q, b.id, r, 1)
  b.modified, b.aged = q.now, q.now
end

local function note_more(q, r, o)
  mark(r, EXEMPT, o.exempt)
  if o.profile ~= '' then change_extra(q, r).profile = o.profile end
  if o.ledger ~= '' then
    local x = change_extra(q, r)
    x.ledger, x.status = o.ledger, o.status
  end
end

local function create(q, o, body, old, live)
  local r = new_job(q, o.id, o.submitter, o.need, o.band, body)
  local outcome = 'created'
  if old then
    r.version, r.previous = old.version + 1, old.record
  end
  if live then
    outcome, r.created = 'next-version', live.created
    mark(r, OLDER, true)
    if q.news then tell.version(q, live.key, r.key) end
  end
  describe(q, r, o, body)
  if o.more then note_more(q, r, o) end
  if o.more or old then enlist(q, r, o, old) end
  place_anew(q, r, o, r.record)
  if is_blocked(q, r.id) then mark(r, BLOCKED, true) end
  return r, { outcome, r.record, r.version }
end

-- With nobody waiting, a due job goes straight to a free worker: no place is written and removed again.
local function start_at_once(q, r, o, body)
  if q.waiting > 0 or q.paused or q.free <= 0 or (r.expires > 0 and r.expires <= q.now) then return false end
  if (r.release > q.now and not q.settings.eager) or has(r, BLOCKED) then return false end
  if has(r, LACKING) or (q.flags > 0 and hold_reason(q, r)) then return false end
  local units = free_units(q)
  local worker = not first_full(units, r.level) and pick(q, room_for(q), r.need)
  if not worker then return false end
  note_recent(q, o, r.arrival)
  worker.free = worker.free - 1
  send(q, worker.name, start_job(q, r, worker, start_class(q, units, r), body))
  write_leases(q, worker)
  return true
end

verb.put = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local orders, ids, newest, answers = {}, {}, {}, {}
  for i = 3, #args, 2 do
    local o = read_order(args[i])
    orders[#orders + 1] = o
    ids[#ids + 1] = o.id
  end
  local got = call('HMGET', q.prefix .. K.Ids, unpack(ids))
  local known = {}
  for i, id in ipairs(ids) do
    newest[id] = got[i]
    if got[i] then known[#known + 1] = got[i] end
  end
  load_jobs(q, known)
  local announced = next(q.crews.by_need) ~= nil
  for i, o in ipairs(orders) do
    local body = args[2 * i + 2]
    local old = newest[o.id] and q.jobs[newest[o.id]]
    local live = unended(q, old)
    local refusal = (o.more or old) and not_for_batch(q, o, old, live)
    local passed = o.more and o.ledger ~= '' and known_in_ledger(q, o, old) or o.only_new and known_row(q, o)
    if passed then
      answers[i] = passed
    elseif o.level > #q.settings.caps then
      answers[i] = 'no-class'
    elseif live and live.submitter ~= o.submitter then
      answers[i] = 'other-submitter'
    elseif live and live.band == INTERACTIVE then
      answers[i] = 'interactive'
    elseif announced and o.need ~= COMMAND and not q.crews.by_need[o.need]
      and string.sub(o.need, 1, #STAGE) ~= STAGE then
      answers[i] = 'unknown-handler'
    elseif refusal then
      answers[i] = refusal
    elseif old and (old.phase == 'W' or old.phase == 'H') then
      answers[i] = update(q, old, o, body)
    else
      answers[i] = full(q, o)
      if not answers[i] then
        local r
        r, answers[i] = create(q, o, body, old, live)
        newest[o.id] = r.key
        if #orders > 1 or not start_at_once(q, r, o, body) then arrive(q, r, o) end
      end
    end
  end
  local _, moment = finish_verb(q)
  return { moment, unpack(answers) }
end
