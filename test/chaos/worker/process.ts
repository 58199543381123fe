import { setTimeout as delay } from "node:timers/promises";
import type { LockClient } from "../../../src/index.ts";
import { Dice } from "../dice.ts";
import { micros } from "../history/events.ts";
import { Recorder } from "../history/recorder.ts";
import { type AnyLease, toldAs } from "./any-lock.ts";
import { startBystanders } from "./bystanders.ts";
import { caller, type Desk } from "./caller.ts";
import { connect, createLocks, type Wire } from "./connect.ts";
import { explain } from "./explain.ts";
import type { Order, Report, WorkerOptions } from "./orders.ts";
import { plants } from "./plants.ts";
import { Rest } from "./rest.ts";
import { watchTroubles } from "./troubles.ts";
import { usage } from "./usage.ts";

// A worker: many callers on one lock client, in a process that may be killed, stopped and blocked
// at any time.

interface Worker {
  readonly recorder: Recorder;
  readonly wires: readonly Wire[];
  readonly desk: Desk;
}

let worker: Worker | undefined;

async function start(options: WorkerOptions): Promise<void> {
  if (options.plant) plants[options.plant]();
  const recorder = new Recorder(options.folder, options.by);
  watchTroubles(recorder);

  const wires = connect(options);
  // Of several masters some may be down.
  await Promise.any(wires.map(({ ready }) => ready));
  const locks = createLocks(wires, options);
  const dice = new Dice(options.seed);
  const noted = { holding: new Map<string, Map<number, AnyLease>>(), unended: new Set<string>() };
  const counts = { calls: 0, grants: 0, isOpen: true };
  const rest = { isQuorum: wires.length > 1, rest: new Rest(options.callers), ...noted, ...counts };
  const { locks: names, owns, taste } = options;
  const desk: Desk = { locks, names, owns, taste, dice, recorder, ...rest };
  listen(locks, desk);
  worker = { recorder, wires, desk };
  recorder.tell({ is: "up", settings: JSON.stringify({ ...options.client, ...options.connect }) });
  report({ is: "ready" });
  setInterval(() => report({ is: "progress", grants: desk.grants }), 1_000);

  startBystanders(desk);
  await Promise.all(Array.from({ length: options.callers }, () => caller(desk)));
  await end(worker);
}

function listen(locks: LockClient, { holding, unended, recorder }: Desk): void {
  locks.on("renew", ({ name, token, call: caller, remaining }) => {
    // `remaining` was true a moment ago: a deadline that is a little too late would be unfair to the client.
    for (const [call, lease] of holding.get(toldAs(name, token, caller)) ?? [])
      if (lease.held)
        recorder.tell({ is: "seen", call, after: "a renewal", held: true, left: remaining - 0.1 });
  });
  // A lock may be somebody else's as soon as the client has told its loss: `close()` and a quorum
  // that has lost a majority give the rest back at once. Holders who only look now and then are
  // told by this.
  locks.on("lost", ({ name, token, call: caller }) => {
    for (const call of holding.get(toldAs(name, token, caller))?.keys() ?? [])
      recorder.tell({ is: "seen", call, after: "a loss", held: false, left: 0 });
  });
  locks.on("error", (error) => {
    if ("lockName" in error && error.message.includes("the end of this run"))
      unended.add(`${error.lockName}`);
    recorder.tell({ is: "trouble", error: explain(error) });
  });
}

/** ms after the last call until what was kept, or is on its way, is over. */
const SETTLED = 3_000;

/** No call is under way, and what was on its way has arrived: reports what it has. */
async function rested({ desk }: Worker): Promise<void> {
  await desk.rest.begin();
  await delay(SETTLED);
  report({ is: "rested", usage: await usage() });
}

/** All calls have ended: so does the process. */
async function end({ desk, wires, recorder }: Worker): Promise<void> {
  await desk.locks.close({ grace: 1_000 });
  for (const wire of wires) wire.close();
  if (!desk.isQuorum) recorder.tell({ is: "kept", ...desk.locks.stats() });
  recorder.tell({ is: "done" });
  report({ is: "progress", grants: desk.grants });
  process.disconnect();
  process.exit();
}

/** Orders that end it. */
const LAST: readonly Order["do"][] = ["drain", "close", "exit"];

function obey(order: Order): void {
  if (order.do === "start") void start(order.options);
  // It cannot reach Redis yet, or was slow to start. It has done nothing so far, and nobody will
  // tell it again.
  else if (!worker && LAST.includes(order.do)) process.exit();
  if (!worker) return;
  const { desk, wires, recorder } = worker;
  if (order.do === "drain") desk.isOpen = false;
  else if (order.do === "rest") void rested(worker);
  else if (order.do === "go on") desk.rest.end();
  else if (order.do === "reconnect") desk.dice.pick(wires).reconnect(desk.dice);
  else if (order.do === "exit") {
    // It counts as a holder until here.
    if (!desk.isQuorum) recorder.tell({ is: "kept", ...desk.locks.stats() });
    recorder.tell({ is: "dead", victim: recorder.by, meant: true, how: "exit" });
    process.exit();
  } else if (order.do === "close") {
    desk.isOpen = false;
    void desk.locks.close({ grace: order.grace });
  } else if (order.do === "block") {
    recorder.tell({ is: "blocked", ms: order.ms });
    for (const end = micros() + order.ms * 1_000; micros() < end; );
  }
}

function report(report: Report): void {
  if (process.connected) process.send?.(report);
}

process.on("message", obey);
process.on("disconnect", () => process.exit()); // the parent has gone
