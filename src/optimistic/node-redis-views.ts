import { isReply } from "../redis/node-redis/client.ts";
import { timely } from "./node-redis-connection.ts";

/** What the body gets of a connection, guarded. */
export interface Guards {
  /** @throws for a command that the body may not send, or queue. */
  guard(command: string, isQueued: boolean): void;
  /** @throws the error, and ends the connection if it is to blame. */
  judge(error: Error): never;
  exec(): never;
}

type Method = (...args: unknown[]) => unknown;

/** The words of a raw command begin with its name. */
const nameOf = (method: string, [words]: readonly unknown[]): string =>
  (/^(send|add)Command$/.test(method) && Array.isArray(words) ? String(words[0]) : method).toLowerCase();

/** A client for reading. Copies of it, such as `withTypeMapping()`, are guarded too. */
export function readingView(client: object, guards: Guards): object {
  return new Proxy(client, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return isClient(value) ? readingView(value, guards) : value;
      return (...args: unknown[]) => {
        const name = nameOf(String(key), args);
        try {
          guards.guard(name, false);
        } catch (error) {
          // It returns no promise, whose rejection nothing would handle.
          if (name === "multi") throw error;
          return Promise.reject(error);
        }
        const result = (value as Method).apply(target, args);
        if (result instanceof Promise) return guarded(result, guards);
        return isClient(result) ? readingView(result, guards) : result;
      };
    },
  });
}

function guarded(reply: Promise<unknown>, { judge }: Guards): Promise<unknown> {
  const limited = timely(reply);
  limited.catch((error: Error) => {
    isReply(error);
    try {
      judge(error);
    } catch {
      // The body has the error.
    }
  });
  return limited;
}

/** So do the groups of a module's commands. */
const isClient = (value: unknown): value is object =>
  typeof value === "object" && value !== null && "_self" in value;

/** A queue for writing, which only this package executes. */
export function writingView(multi: object, guards: Guards): object {
  const view: object = new Proxy(multi, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      if (/^exec/i.test(String(key))) return guards.exec;
      return (...args: unknown[]) => {
        guards.guard(nameOf(String(key), args), true);
        const result = (value as Method).apply(target, args);
        return result === target ? view : result;
      };
    },
  });
  return view;
}
