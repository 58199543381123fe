import { tracingChannel } from "node:diagnostics_channel";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { spinLock } from "../../src/spin.ts";
import { freshName, testUrl } from "../support/fixture.ts";

// Those who trace an application look at the commands that ioredis is given, and at what becomes of them.

interface Command {
  readonly name: string;
  readonly args: readonly unknown[];
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
}

describe.each([
  ["6", () => new Redis(testUrl())],
  ["5", () => new Redis5(testUrl())],
] as const)("ioredis %s", (_, connect) => {
  const redis = connect();
  const locks = createLockClient(redis);
  // Connected, and the scripts are known to the server: what waits in the offline queue is given to
  // ioredis twice.
  beforeAll(() => spinLock(locks, freshName()).withLock(() => {}));
  afterAll(async () => {
    await locks.close();
    redis.disconnect();
  });

  it("a tracer that wraps a command's function, and calls it without `this`, sees every script", async () => {
    const seen: string[] = [];
    const send = redis.sendCommand.bind(redis) as (command: Command) => unknown;
    const traced = (command: Command): unknown => {
      const sent = send(command);
      const { resolve, reject } = command;
      command.resolve = (reply) => {
        seen.push(`${command.name} ${command.args[1]}`);
        resolve(reply);
      };
      command.reject = (error) => reject(error);
      return sent;
    };
    Object.assign(redis, { sendCommand: traced });
    onTestFinished(() => void delete (redis as { sendCommand?: unknown }).sendCommand);
    await spinLock(locks, freshName()).withLock(() => {});
    expect(seen.filter((script) => /^eval(sha)? 1$/.test(script)).length).toBe(2);
  });

  it("a tracer sees a script that the server does not know as two commands, each of which ends once", async () => {
    const ends: [name: string, times: number][] = [];
    const send = redis.sendCommand.bind(redis) as (command: Command) => unknown;
    let isRefused = false;
    const traced = (command: Command): unknown => {
      const { resolve, reject } = command;
      const seen: [string, number] = [command.name, 0];
      ends.push(seen);
      command.resolve = (reply) => {
        seen[1]++;
        resolve(reply);
      };
      command.reject = (error) => {
        seen[1]++;
        reject(error);
      };
      if (isRefused) return send(command);
      isRefused = true;
      setImmediate(() => command.reject(new Error("NOSCRIPT No matching script")));
      return undefined;
    };
    Object.assign(redis, { sendCommand: traced });
    onTestFinished(() => void delete (redis as { sendCommand?: unknown }).sendCommand);
    await spinLock(locks, freshName()).withLock(() => {});
    expect(ends.filter(([name]) => name.startsWith("eval"))).toEqual([
      ["evalsha", 1],
      ["eval", 1],
      ["evalsha", 1],
    ]);
  });

  it("a subscriber of its diagnostics channel is notified when a script is answered", async () => {
    const ended: string[] = [];
    const channel = tracingChannel<string, { command?: string }>("ioredis:command");
    const listeners = { asyncEnd: ({ command = "" }: { command?: string }) => void ended.push(command) };
    channel.subscribe(listeners as never);
    onTestFinished(() => void channel.unsubscribe(listeners as never));
    await spinLock(locks, freshName()).withLock(() => {});
    await redis.ping();
    expect(ended.filter((command) => command.startsWith("eval")).length).toBe(2);
  });
});
