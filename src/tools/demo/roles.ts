import type { Job, Role, Span } from "./member.ts";

// What the processes of the demo do: a shop with a night's work beside it.

const S = 1_000;
/** Longer than any lock of the fleet is held, unless a knob is turned. */
const WAIT = { wait: 600 * S };

let orders = 4_700;
/** Names are few, so that the memory does not grow. */
const nextOrder = (): number => 4_700 + (++orders % 100);

/** All shops sell the same mug. */
const sell: Job = async ({ locks, rest, work }) => {
  await locks
    .lock("stock:blue-mug")
    .withLock({ ...WAIT, label: `order ${nextOrder()}` }, (lease) => work(lease, [0.8 * S, 2.2 * S], true));
  await rest([0.2 * S, 1.2 * S]);
};

/** An order of its own, for which no other process waits. */
const ship: Job = async ({ locks, rest, work }) => {
  await locks.lock(`order:${nextOrder()}`).withLock(WAIT, (lease) => work(lease, [1 * S, 4 * S]));
  await rest([1 * S, 4 * S]);
};

/** One process asks for the rates, and all use the answer. */
const readRates: Job = async ({ locks, rest, work }) => {
  await locks.remember("rates:eur", { keep: 12 * S, ...WAIT }, async (run) => {
    await work(run, [2 * S, 4 * S]);
    return { usd: 1.08 };
  });
  await rest([2 * S, 6 * S]);
};

const importCatalogue: Job = async ({ locks, rest, work }) => {
  await locks
    .lock("import:catalogue")
    .withLock({ ...WAIT, label: "nightly run" }, (lease) => work(lease, [25 * S, 40 * S], true));
  await locks
    .readWriteLock("catalogue")
    .write.withLock({ ...WAIT, label: "nightly run" }, (lease) => work(lease, [2 * S, 4 * S]));
  await rest([1 * S, 3 * S]);
};

/** Reads what the import writes. */
const report: Job = async ({ locks, rest, work }) => {
  await locks
    .readWriteLock("catalogue")
    .read.withLock({ ...WAIT, label: "daily report" }, (lease) => work(lease, [3 * S, 7 * S], true));
  await rest([1 * S, 3 * S]);
};

const compare: Job = async ({ locks, rest, work }) => {
  await locks.readWriteLock("catalogue").read.withLock(WAIT, (lease) => work(lease, [1 * S, 3 * S]));
  await rest([2 * S, 5 * S]);
};

/** The mail server takes two connections. */
const send =
  (isMain: boolean): Job =>
  async ({ locks, rest, work }) => {
    await locks
      .semaphore("smtp", { permits: 2 })
      .withPermits(WAIT, (lease) => work(lease, [1 * S, 3 * S], isMain));
    await rest([0.1 * S, 0.6 * S]);
  };

/** Its process keeps this lock while no other one wants it: it can be recalled. */
const renderMail: Job = async ({ locks, rest }) => {
  await locks.lock("templates", { linger: 1.5 * S }).withLock(WAIT, () => {});
  await rest([0.3 * S, 1 * S]);
};

/** The leader plans the night's work. */
const lead =
  (value: string): Job =>
  ({ locks, signal, work }) =>
    locks
      .election("scheduler")
      .runAsLeader({ value, signal }, (term) => work(term, [60 * S, 90 * S] satisfies Span));

const shop: readonly Job[] = [sell, ship, readRates];

export const ROLES: readonly Role[] = [
  { name: "web-1", pid: 2041, work: "sells mugs", jobs: shop },
  { name: "web-2", pid: 2210, work: "sells mugs", jobs: shop },
  { name: "web-3", pid: 1877, work: "sells mugs", jobs: shop },
  { name: "jobs-1", pid: 318, work: "imports the catalogue", jobs: [importCatalogue, lead("jobs-1:8080")] },
  {
    name: "jobs-2",
    pid: 327,
    work: "reports on the catalogue",
    jobs: [report, send(false), lead("jobs-2:8080")],
  },
  {
    name: "mailer-1",
    pid: 77,
    work: "sends mail",
    jobs: [send(true), send(false), renderMail, compare, lead("mailer-1:8080")],
  },
];
