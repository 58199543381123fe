// What the examples of the doc comments take from the reader's own application: each does a little,
// and refuses what an application would refuse. It is compiled beside them, against the package.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a lease gives to what works under it. */
interface Terms {
  readonly signal?: AbortSignal;
  readonly fence?: number;
}

function checkTerms({ signal, fence }: Terms): void {
  signal?.throwIfAborted();
  assert(fence === undefined || fence > 0, "a fencing token is above 0");
}

export const order = { id: 42 };
export async function charge(what: { id: number }, terms: Terms = {}): Promise<{ paid: number }> {
  assert.equal(what.id, 42);
  checkTerms(terms);
  return { paid: what.id };
}

export const isPaid = async ({ id }: { id: number }): Promise<boolean> => id !== 42;

export async function work(terms: Terms = {}): Promise<void> {
  checkTerms(terms);
}

const accounts = new Map([
  [1, 100],
  [2, 0],
]);
const move = (account: number, amount: number, terms: Terms): void => {
  checkTerms(terms);
  const before = accounts.get(account);
  assert(before !== undefined, "no such account");
  accounts.set(account, before + amount);
};
export const withdraw = async (account: number, terms: Terms): Promise<void> => move(account, -10, terms);
export const deposit = async (account: number, terms: Terms): Promise<void> => move(account, 10, terms);

export const mail = { to: "alice@example.com" };
export async function send(what: { to: string }, terms: Terms = {}): Promise<void> {
  assert.match(what.to, /@/);
  checkTerms(terms);
}
export const sendReport = (terms: Terms): Promise<void> => send(mail, terms);

export const batches = [
  [1, 2],
  [3, 4],
];
export async function reindex(batch: readonly number[], terms: Terms): Promise<void> {
  assert(batch.length > 0);
  checkTerms(terms);
}

let stored = "blue";
export const load = async (): Promise<string> => stored;
export async function store(value: string, terms: Terms): Promise<void> {
  checkTerms(terms);
  stored = value;
}

export const isDraining = false;
export const jobs = [() => {}];
export async function drain(queue: (() => void)[]): Promise<void> {
  for (const job of queue) job();
}

/** A process that is to stop after it has worked twice, or as soon as it has found the leader. */
export class Candidate {
  readonly #stop = new AbortController();
  #worked = 0;
  readonly stopping = this.#stop.signal;
  readonly schedule = async (terms: Terms): Promise<void> => {
    checkTerms(terms);
    if (++this.#worked === 2) this.#stop.abort();
  };
  readonly connect = (address: string): void => {
    assert.equal(address, "10.0.0.7:8080");
    this.#stop.abort();
  };
  readonly disconnect = (): void => {};
}

/** A server with one handler, which is asked once. */
export class App {
  readonly #server = createServer();
  #path = "";

  use(path: string, handler: (request: IncomingMessage, response: ServerResponse) => unknown): void {
    this.#path = path;
    this.#server.on("request", handler);
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    try {
      const headers = { authorization: "Basic YWxpY2U6c2VjcmV0", connection: "close" };
      const { status } = await fetch(`http://127.0.0.1:${port}${this.#path}`, { headers });
      assert.equal(status, 200);
    } finally {
      this.#server.close();
    }
  }
}
export const isAdmin = (request: Request): boolean => request.headers.has("authorization");

/** The answer to a scrape. */
export const response = {
  end(body: string): void {
    assert.match(body, /^# HELP holdfast_/m);
  },
};

/** As test runners have it. */
export const expect = (what: unknown) => ({
  toBe(wanted: unknown): void {
    assert.equal(what, wanted);
  },
  rejects: {
    toThrow: (kind: new (...args: never[]) => Error): Promise<void> =>
      assert.rejects(what as Promise<unknown>, kind),
  },
});
