import { once } from "node:events";
import { createLockClient } from "holdfast";
import { connect, figure, ms, prove, seconds, sleep, startProcess, until, word } from "./support.ts";

const redis = connect();
const lease = Number(process.argv[3]);
const locks = createLockClient(redis);
const url = `10.0.0.7:${process.pid}`;

/** What only one process may do. Tells this program's parent that it runs. */
async function work(signal: AbortSignal): Promise<void> {
  process.send?.("leads");
  while (!signal.aborted) await sleep(20);
}

// #region lead
/**
 * Every process calls this when it starts: one of them works at any time, until it stops, dies or
 * loses its term.
 */
async function lead(stopping: AbortSignal): Promise<void> {
  const locks = createLockClient(redis);
  // the knob: the others wait for this long when a leader dies
  const election = locks.election("reports", { lease });
  try {
    // until `stopping` aborts
    await election.runAsLeader({ value: url, signal: stopping }, (term) => work(term.signal));
  } finally {
    await locks.close();
  }
}

/** Sends the leader's address to the services that need it, at each change. */
async function follow(stopping: AbortSignal, sendTo: (url: string | null) => void): Promise<void> {
  const locks = createLockClient(redis);
  for await (const leader of locks.election("reports").observe({ signal: stopping })) {
    sendTo(leader?.value ?? null); // null: no leader, or it is unknown
  }
  await locks.close();
}
// #endregion

/** Does this process wait to lead? */
async function isWaiting(pid: number | undefined): Promise<boolean> {
  for await (const { waiters } of locks.list({ match: "reports" }))
    if (waiters?.some((waiter) => waiter.pid === pid)) return true;
  return false;
}

const [, , role] = process.argv;
if (role === "candidate") {
  const stopping = new AbortController();
  process.once("SIGTERM", () => stopping.abort());
  await lead(stopping.signal);
  await locks.close();
  await redis.quit();
  process.disconnect?.();
} else {
  const times: number[] = [];
  const followed = new AbortController();
  let seen: string | null = null;
  const following = follow(followed.signal, (now) => {
    seen = now;
  });
  for (const lease of [1_000, 5_000]) {
    const leader = startProcess(import.meta.url, "candidate", String(lease));
    prove((await word(leader)) === "leads", "the first candidate leads");
    await until("its address to be seen", () => seen === `10.0.0.7:${leader.pid}`);
    const heir = startProcess(import.meta.url, "candidate", String(lease));
    let isLeading = false;
    heir.once("message", () => {
      isLeading = true;
    });
    await sleep(lease + 500); // longer than a lease: the watchdog renews it
    prove(!isLeading, "the second one waits as long as the first one lives");

    const killed = performance.now();
    leader.kill("SIGKILL");
    await word(heir);
    const time = performance.now() - killed;
    prove(time < lease + 30_000, "a dead leader costs its lease and a re-check");
    figure(`take-over after SIGKILL, lease ${seconds(lease)}`, seconds(time));
    await until("its heir's address to be seen", () => seen === `10.0.0.7:${heir.pid}`);
    times.push(time);

    const next = startProcess(import.meta.url, "candidate", String(lease));
    await until("the next one to wait", () => isWaiting(next.pid));
    const stopped = performance.now();
    heir.kill("SIGTERM");
    await word(next);
    const handedOver = performance.now() - stopped;
    figure("take-over after SIGTERM", ms(handedOver));
    prove(handedOver < time, "a leader that stops hands over sooner than one that dies");
    next.kill("SIGTERM");
    await Promise.all([next, heir].map((child) => child.exitCode ?? once(child, "exit")));
  }
  prove((times[1] ?? 0) > (times[0] ?? 0), "a longer lease is a longer take-over");
  followed.abort();
  await following;
  await locks.close();
  await redis.quit();
}
