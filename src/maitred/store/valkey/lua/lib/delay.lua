-- The delay policy: a submitter's recent submissions within the window, times a step.
-- gives: recent_count, delay_of, note_recent

local function recent_count(q, submitter)
  local since = '(' .. string.format('%.0f', q.now - q.settings.window)
  return call('ZCOUNT', q.prefix .. K.Recent .. submitter, since, '+inf')
end

-- The delay of an order and, where the policy decided, the count behind it (else -1).
local function delay_of(q, o)
  if o.band < SCHEDULED then return 0, -1 end
  local sent = math.max(o.delay, 0)
  if o.band ~= SCHEDULED or q.settings.per_recent == 0 or o.exempt then return sent, -1 end
  local recent = recent_count(q, o.submitter)
  local computed = recent * q.settings.per_recent
  if o.delay < 0 or (o.policy_floor and computed > o.delay) then return computed, recent end
  return sent, -1
end

local function note_recent(q, o, seq)
  if o.band ~= SCHEDULED or q.settings.per_recent == 0 or o.exempt then return end
  local key = q.prefix .. K.Recent .. o.submitter
  call('ZREMRANGEBYSCORE', key, '-inf', q.now - q.settings.window)
  call('ZADD', key, q.now, key8(seq))
  call('PEXPIRE', key, math.ceil(q.settings.window / 1000))
end
