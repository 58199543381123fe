import { AsyncResource } from "node:async_hooks";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import timers from "node:timers";
import pauses from "node:timers/promises";
import { Dice } from "./dice.ts";
import type { Product, Surroundings } from "./product.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { Story } from "./story.ts";
import { TIMER, Time, turn } from "./time.ts";

const { HOLDFAST_SEED = "1", HOLDFAST_TRACE } = process.env;

export const time = new Time();
export const dice = new Dice(Number(HOLDFAST_SEED));
/** `HOLDFAST_TRACE`: the file for its lines. */
export const story = new Story(time, HOLDFAST_TRACE !== undefined);

/** In ms: what reading the clock takes, so a loop that waits for a time ends. */
const READ = 0.001;
/** In ms of virtual time: longer than any work takes, but work that hangs. */
const LONGEST = 120_000;

const MANUAL = { requireManualDestroy: true };
/** Events run in no caller's asynchronous context. */
const outside = new AsyncResource("VirtualTime", MANUAL);
/** How many calls of `whileTimePasses` have not ended. */
let watching = 0;
let isPassing = false;
let made: SimulatedProcess | null = null;

/** This process, after `makeTimeVirtual`. */
export function thisProcess(): SimulatedProcess {
  if (!made) throw new Error("Time is not virtual here: use it in the project that says so");
  return made;
}

/**
 * Makes all timers and clocks of this process virtual, and its randomness the same in every run of a
 * seed. To be called once, before the modules are loaded that keep the functions of Node.js; a test
 * runner keeps those that it has.
 */
export function makeTimeVirtual(): void {
  const load = (surroundings: Surroundings): Product => {
    install(surroundings);
    return {} as Product;
  };
  const clocks = { rate: 1, skew: 0 };
  made = new SimulatedProcess({ time, story, dice: dice.split(), load, number: 1, clocks });
}

/** Replaces what a process has for itself: in the modules of Node.js, and globally. */
function install({ modules, globals }: Surroundings): void {
  const own = { ...(modules.timers as Record<string, Timer>) };
  for (const name of ["setTimeout", "setInterval", "setImmediate"]) {
    const set = own[name] as Timer;
    own[name] = (ring, ...rest) => {
      const context = new AsyncResource("VirtualTimer", MANUAL);
      return set((...values) => context.runInAsyncScope(ring, undefined, ...values), ...rest);
    };
  }
  Object.assign(timers, own);
  Object.assign(globalThis, own);
  Object.assign(pauses, {
    setTimeout: (ms: number) => new Promise((resolve) => own.setTimeout?.(resolve, ms)),
    setImmediate: () => new Promise((resolve) => own.setImmediate?.(resolve)),
  });
  const { randomBytes, randomFillSync, randomUUID } = modules.crypto as typeof crypto;
  Object.assign(crypto, { randomBytes, randomFillSync, randomUUID });
  Object.assign(os, modules.os);
  syncBuiltinESMExports();

  const { Date: SimulatedDate, performance: clock, Math: chance, process: self, ...rest } = globals;
  const { now } = clock as typeof performance;
  performance.now = () => now() + tick();
  const { now: wall } = SimulatedDate as DateConstructor;
  Date.now = () => Math.floor(wall() + tick());
  Math.random = (chance as Math).random;
  Object.defineProperty(process, "pid", { value: (self as typeof process).pid });
  globalThis.FinalizationRegistry = rest.FinalizationRegistry as typeof FinalizationRegistry;
}

/** The event in which the clock was read last, and how long this process has worked in it, in ms. */
let event = 0;
let worked = 0;

/** Reading the clock is work: events of this process wait for its end. Returns how long it worked. */
function tick(): number {
  if (event !== time.count) worked = 0;
  event = time.count;
  worked += READ;
  const self = thisProcess();
  self.busyUntil = Math.max(self.busyUntil, time.now + worked);
  return worked;
}

type Timer = (ring: (...values: unknown[]) => void, ...rest: unknown[]) => unknown;

/**
 * Time passes only while such work runs. What a test runner does between two tests takes none, so
 * every run has the same events at the same times. Rejects after two minutes of virtual time.
 */
export async function whileTimePasses<T>(work: () => Promise<T>): Promise<T> {
  watching++;
  let fail = (_: Error): void => {};
  const tooLong = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const error = new Error(`not over after ${LONGEST} ms of virtual time`);
  const end = time.at(time.now + LONGEST, TIMER, thisProcess(), () => fail(error));
  if (!isPassing) outside.runInAsyncScope(() => void pass());
  try {
    return await Promise.race([work(), tooLong]);
  } finally {
    end.isOff = true;
    watching--;
  }
}

async function pass(): Promise<void> {
  isPassing = true;
  await turn(); // the work has begun
  while (watching > 0) {
    try {
      await time.run(Number.POSITIVE_INFINITY, () => watching === 0);
    } catch (error) {
      // As an error that a timer's callback throws: no caller gets it.
      Promise.reject(error);
    }
  }
  isPassing = false;
}
