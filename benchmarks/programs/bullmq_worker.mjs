// BullMQ's worker: one process, BENCH_CONCURRENCY jobs at a time; its processor is the twin of tally.py.
import { connect, load, now } from './desk.mjs';

const { Worker } = load('bullmq');
const desk = await connect();
const jobs = Number(process.env.BENCH_JOBS ?? 0);
const seen = new Uint8Array(Math.max(jobs, 1 << 20));
let count = 0;
let first = 0n;

async function run(job) {
  if (job.name === 'stamp') {
    desk.say({ nanoseconds: Number(now() - BigInt(job.data.sent)) });
    return;
  }
  if (seen[job.data.number]) return;
  seen[job.data.number] = 1;
  count += 1;
  if (count === 1) first = now();
  if (count === jobs) desk.say({ jobs, nanoseconds: Number(now() - first) });
}

const worker = new Worker('bench', run, {
  connection: { path: process.env.BENCH_STORE, maxRetriesPerRequest: null },
  concurrency: Number(process.env.BENCH_CONCURRENCY),
});
worker.on('error', error => console.error(error));
await worker.waitUntilReady();
desk.say({ ready: true });
