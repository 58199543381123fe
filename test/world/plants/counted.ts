import type { Plant } from "./plant.ts";

/** Bugs of the scripts of semaphores and read-write locks. */
export const counted: readonly Plant[] = [
  {
    name: "a free permit is enough for any request",
    bug: "A request without waiters before it is granted while any permit is free, however many it wants.",
    promise: "Permits are never exceeded.",
    file: "lua/counted/common-acquire.lua",
    replaces: "#used == 7 and used <= permits",
    by: "#used == 7 and sum < tonumber(permits)",
  },
  {
    name: "a release leaks a permit",
    bug: "Each release counts one permit too few as free.",
    promise: "Permits that are given back can be taken again.",
    file: "lua/counted/end.lua",
    replaces: "used - units + stays, true, true",
    by: "used - units + stays + 1, true, true",
  },
  {
    name: "grants of permits are not published",
    bug: "A waiter is granted permits or a read or write lock in Redis, and receives no message.",
    promise: "A release grants to the next waiter by one message.",
    file: "lua/counted/shared.lua",
    replaces: `  redis.pcall("PUBLISH", channel, table.concat(`,
    by: `  redis.pcall("EXISTS", channel, table.concat(`,
  },
  {
    name: "a waiter is granted one unit too many",
    bug: "The head of a queue is granted its units if all but one of them are free.",
    promise: "Permits are never exceeded; a writer is alone.",
    file: "lua/counted/waiters.lua",
    replaces: "if units > permits - used or",
    by: "if units > permits - used + 1 or",
  },
  {
    name: "a late copy gives readers an old token",
    bug: "Late copies of a writer's acquire and of its change to a reader give later readers an older token.",
    promise: "Tokens grow with every change of holder.",
    file: "lua/counted/end.lua",
    replaces: "present > token and present or token",
    by: "present",
    test: {
      file: "test/world/directed/late-copies.test.ts",
      title: "late copies of both its commands give later readers no older token",
      project: "world",
    },
  },
];
