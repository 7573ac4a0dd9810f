-- Holds: flags of submitters, profiles and batches in `Holds`, and the jobs that each of them keeps in `HeldBy.<flag>`;
-- `Held` has all jobs that are held. What was taken away is in `Returning` until its jobs have come back.
-- gives: flags_of, hold_reason, holds_of, set_held, unlist_held, raise_flag, lower_flag, lacks_space, over_budget

-- The flags that would concern a job, the nearest first.
local function flags_of(q, r)
  local x, flags = extra_of(q, r), {}
  if x.batch ~= '' then flags[1] = 'batch:' .. x.batch end
  flags[#flags + 1] = 'submitter:' .. r.submitter
  if x.profile ~= '' then flags[#flags + 1] = 'profile:' .. x.profile end
  return flags
end

-- What holds a job, or will before its next stage: 'job' for its own hold, a flag, or nil.
local function hold_reason(q, r)
  if has(r, EXTRA) and extra_of(q, r).hold ~= '' then return 'job' end
  if q.flags == 0 then return nil end
  local flags = flags_of(q, r)
  local got = call('HMGET', q.prefix .. K.Holds, unpack(flags))
  for i, flag in ipairs(flags) do
    if got[i] then return flag end
  end
end

-- All reasons that hold a job: flag and text, one after another; of its own the flag is 'job:' and its id.
local function holds_of(q, r)
  local found, own = {}, extra_of(q, r).hold
  if own ~= '' then found = { 'job:' .. r.id, own } end
  if q.flags > 0 then
    local flags = flags_of(q, r)
    local got = call('HMGET', q.prefix .. K.Holds, unpack(flags))
    for i, flag in ipairs(flags) do
      if got[i] then
        found[#found + 1] = flag
        found[#found + 1] = got[i]
      end
    end
  end
  return found
end

-- Sets a job aside that does not stand in line; it keeps what its place was.
local function set_held(q, r, reason)
  counted(q, r, -1)
  r.phase, r.worker = 'H', ''
  set_own(r, false)
  mark(r, BLOCKED, false)
  mark(r, LACKING, false)
  counted(q, r, 1)
  call('ZADD', q.prefix .. K.Held, r.record, r.key)
  if reason ~= 'job' then call('ZADD', q.prefix .. K.HeldBy .. reason, r.record, r.key) end
  must_say(q, r)
  touch(q, r)
  if q.news then tell.changed(q, r) end
end

local function unlist_held(q, r)
  call('ZREM', q.prefix .. K.Held, r.key)
  for _, flag in ipairs(flags_of(q, r)) do
    local key = q.prefix .. K.HeldBy .. flag
    if call('ZREM', key, r.key) == 1 and q.returning > 0 and call('EXISTS', key) == 0 then
      q.returning = q.returning - call('LREM', q.prefix .. K.Returning, 1, flag)
    end
  end
end

-- Holds all that a flag concerns; one that was just taken away keeps whom it still has.
local function raise_flag(q, flag, text)
  q.flags = q.flags + call('HSET', q.prefix .. K.Holds, flag, text)
  if q.returning > 0 then q.returning = q.returning - call('LREM', q.prefix .. K.Returning, 1, flag) end
  tell.house(q)
end

-- Takes a flag away; its jobs come back step by step. Answers whether it was there.
local function lower_flag(q, flag)
  if call('HDEL', q.prefix .. K.Holds, flag) == 0 then return false end
  q.flags = q.flags - 1
  if call('EXISTS', q.prefix .. K.HeldBy .. flag) == 1 then
    call('RPUSH', q.prefix .. K.Returning, flag)
    q.returning = q.returning + 1
  end
  tell.house(q)
  return true
end

-- Whether a job has to be given space before it starts.
local function lacks_space(q, r)
  local first, stage = q.settings.provisioning, math.max(r.stage, 1)
  if first == 0 or has(r, PROVISIONED) or stage < first then return false end
  return stage == first or extra_of(q, r).space > 0
end

local function over_budget(q, r)
  return q.settings.space > 0 and extra_of(q, r).space > q.settings.space
end
