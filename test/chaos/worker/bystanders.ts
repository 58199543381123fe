import { setTimeout as delay } from "node:timers/promises";
import { PERMITS } from "../arenas/arena.ts";
import type { Desk } from "./caller.ts";
import { explain } from "./explain.ts";
import type { SharedName } from "./shared-wish.ts";

// What a worker does beside its callers.

const RESULTS: readonly SharedName[] = ["memo", "flight"];
const ELECTION: SharedName = "throne";
const SEMAPHORE: SharedName = "slots";
/** ms between two numbers of permits. */
const SET_AFTER = { from: 100, to: 1_500 };
/** ms between two results that are forgotten. */
const FORGET_AFTER = { from: 500, to: 4_000 };
const NUMBERS = [PERMITS - 1, PERMITS, PERMITS + 1];

/** Starts those that this worker's wishes ask for. */
export function startBystanders(desk: Desk): void {
  const { shared, names, isPatient } = desk.taste;
  const isWanted = (name: SharedName): boolean =>
    !desk.isQuorum && shared > 0 && names?.includes(name) !== false;
  if (isWanted(ELECTION)) void observe(desk);
  // Where callers are to find only what others leave, the number stays.
  if (isWanted(SEMAPHORE) && !isPatient) void setPermits(desk);
  const results = RESULTS.filter(isWanted);
  if (results.length > 0 && !isPatient) void forget(desk, results);
}

/** Has a result forgotten from time to time. */
async function forget(desk: Desk, names: readonly SharedName[]): Promise<void> {
  const { locks, recorder, dice } = desk;
  for (let number = 1; ; number++) {
    await delay(dice.int(FORGET_AFTER.from, FORGET_AFTER.to));
    if (!desk.isOpen) return;
    const lock = dice.pick(names);
    recorder.tell({ is: "forgets", forget: number, lock });
    const error = await locks.forget(lock).then(() => null, explain);
    recorder.tell({ is: "has forgotten", forget: number, error });
  }
}

/** Tells which leader it is shown, until its client is closed. */
async function observe({ locks, recorder }: Desk): Promise<void> {
  const lock = ELECTION;
  try {
    for await (const leader of locks.election(lock).observe())
      recorder.tell({ is: "shown", lock, token: leader?.token ?? 0, number: Number(leader?.value ?? 0) });
  } catch (error) {
    recorder.tell({ is: "trouble", error: explain(error) });
  }
  recorder.tell({ is: "shown", lock, token: 0, number: 0 });
}

/** Sets another number of permits from time to time, while they are in use. */
async function setPermits(desk: Desk): Promise<void> {
  const { locks, recorder, dice } = desk;
  const slots = locks.semaphore(SEMAPHORE, { permits: PERMITS });
  for (let set = 1; ; set++) {
    await delay(dice.int(SET_AFTER.from, SET_AFTER.to));
    if (!desk.isOpen) return;
    const permits = dice.pick(NUMBERS);
    recorder.tell({ is: "sets", set, lock: SEMAPHORE, permits });
    const error = await slots.setPermits(permits).then(() => null, explain);
    recorder.tell({ is: "has set", set, error });
  }
}
