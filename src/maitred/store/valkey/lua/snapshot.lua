-- snapshot: all keys of the queue as they are, at one moment. For small queues and for tests: its cost grows
-- with all that is kept.
-- args: now, dice
-- answers: {now, {name, type, content, …}}
-- flags: no-writes
local READ = {
  string = function(key) return call('GET', key) end,
  hash = function(key) return call('HGETALL', key) end,
  zset = function(key) return call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  list = function(key) return call('LRANGE', key, 0, -1) end,
  -- What was told is not part of the state.
  stream = function() return {} end,
}

verb.snapshot = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local answer = {}
  for _, key in ipairs(call('KEYS', q.prefix .. '*')) do
    local kind = call('TYPE', key).ok
    answer[#answer + 1] = string.sub(key, #q.prefix + 1)
    answer[#answer + 1] = kind
    answer[#answer + 1] = READ[kind](key)
  end
  return { q.now, answer }
end
