// BullMQ's producer: `add` one by one and `addBulk` for many, the twin of producer.py.
import { connect, load, now } from './desk.mjs';

const CHUNK = 500;
const { Queue } = load('bullmq');
const { createClient } = load('redis');

const queue = new Queue('bench', { connection: createClient({ socket: { path: process.env.BENCH_STORE } }) });
await queue.waitUntilReady();

const data = (number, payload) => (payload ? { number, payload } : { number });

async function oneByOne(start, stop, payload) {
  for (let number = start; number < stop; number++) await queue.add('noop', data(number, payload));
}

async function inBulk(start, stop, payload) {
  for (let from = start; from < stop; from += CHUNK) {
    const jobs = [];
    for (let number = from; number < Math.min(from + CHUNK, stop); number++) {
      jobs.push({ name: 'noop', data: data(number, payload) });
    }
    await queue.addBulk(jobs);
  }
}

const desk = await connect();
desk.say({ ready: true });
let upto = 0;
for await (const request of desk.requests()) {
  if (request.do === 'stamp') {
    await queue.add('stamp', { sent: now().toString() });
    continue;
  }
  const enqueue = request.do === 'bulk' ? inBulk : oneByOne;
  const payload = 'x'.repeat(request.payload ?? 0);
  const warm = upto + (request.warm ?? 0);
  const stop = warm + request.jobs;
  try {
    await enqueue(upto, warm, payload);
    const start = now();
    await enqueue(warm, stop, payload);
    desk.say({ nanoseconds: Number(now() - start) });
    upto = stop;
  } catch (error) {
    desk.say({ error: String(error) });
  }
}
