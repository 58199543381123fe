import { clocks } from "../../util/clock.ts";
import { detached } from "../../util/detached.ts";
import { clearTimeout, setImmediate, setTimeout } from "../../util/real-timers.ts";
import type { Timers } from "../../util/timers.ts";
import type { End, Network, Wire } from "./memory-link.ts";
import type { TestNetwork } from "./test-network.ts";

/** What clients receive in the next turn. All test locks of a process share its clock. */
let underWay = 0;

/** The timers of a client. */
export interface OwnTimers {
  /** Of its leases: they wait for no input. */
  readonly impatient: Timers;
  /** The others: they ring after the input that has arrived. */
  readonly patient: Timers;
}

/**
 * The process of one test client: the way from its connections to the Redis in memory. Redis runs a
 * command within `send`, as if it had read it from the socket at once. Its reply and its messages
 * arrive in later turns of the event loop, in order, and outside any caller's asynchronous context.
 *
 * | state | true | leaves it by |
 * |---|---|---|
 * | running | commands reach Redis, replies and messages arrive | `stop()` → stopped · `die()` → dead |
 * | stopped | no timer rings; what it sends and what arrives waits | `go()` → running · `die()` → dead |
 * | dead | nothing of it reaches Redis, and nothing arrives | – |
 *
 * Besides that it is connected or cut off.
 */
export class TestProcess implements Network {
  readonly name: string;
  readonly redis: TestNetwork["redis"];
  #isDead = false;
  #isCut = false;
  #stopped: OwnTimers | null = null;
  /** In ms of the lock clock. */
  #latency = 0;
  /** What has not arrived yet, and when it does on the monotonic clock: in order. */
  readonly #input: { at: number; readonly arrive: () => void }[] = [];
  /** How many turns of the event loop were asked for, each for one input. */
  #turns = 0;
  #timer: NodeJS.Timeout | undefined;
  /** What was sent while it stood still. */
  readonly #output: (() => void)[] = [];
  /** The ends of its connections, and what breaks the present one. */
  readonly #ends = new Map<End, () => void>();

  constructor(network: TestNetwork) {
    this.name = network.name;
    this.redis = network.redis;
  }

  get isStopped(): boolean {
    return this.#stopped !== null;
  }

  /** Redis cannot be reached. */
  get isAway(): boolean {
    return this.#isCut || this.#isDead;
  }

  connect(end: End, closed: () => void): Wire {
    let isOpen = !this.isAway;
    const close = (): void => {
      if (!isOpen) return;
      isOpen = false;
      closed();
    };
    for (const one of this.#ends.keys()) if (one.isClosed) this.#ends.delete(one);
    this.#ends.set(end, close);
    const send = (work: () => void) => (): void => {
      if (isOpen) work();
    };
    return {
      toServer: (work) => {
        if (this.#stopped) this.#output.push(send(work));
        else if (isOpen) work();
      },
      toClient: (work) => {
        if (isOpen) this.#receive(send(work), this.#latency);
      },
      close,
    };
  }

  // ---- what arrives

  #receive(arrive: () => void, delay = 0): void {
    const last = this.#input.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
    this.#input.push({ at: Math.max(last, clocks.mono.now() + delay), arrive });
    this.look();
  }

  /** When the first one arrives that is not here yet, on the monotonic clock. */
  get next(): number {
    return this.#input[this.#turns]?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Asks for a turn of the event loop for each input that is here. */
  look(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    const now = clocks.mono.now();
    detached(() => {
      for (; this.next <= now; this.#turns++, underWay++) setImmediate(this.#turn);
      // As a socket does, what is under way keeps the process alive.
      const { next } = this;
      if (next < Number.POSITIVE_INFINITY)
        this.#timer = setTimeout(() => this.look(), Math.max(1, Math.ceil(next - now)));
    });
  }

  readonly #turn = (): void => {
    underWay--;
    this.#turns--;
    const first = this.#input[0];
    if (this.#stopped || !first || first.at > clocks.mono.now()) return;
    this.#input.shift();
    first.arrive();
  };

  /** What arrives from now on, and what is under way, arrives at the latest so many ms from now. */
  #hasten(ms: number): void {
    const latest = clocks.mono.now() + ms;
    for (const one of this.#input) one.at = Math.min(one.at, latest);
    this.look();
  }

  set latency(ms: number) {
    this.#latency = ms;
    this.#hasten(ms);
  }

  // ---- what happens to it

  /** It stands still, as by SIGSTOP. */
  stop(own: OwnTimers): void {
    if (this.#isDead) return;
    this.#stopped = own;
    clearTimeout(this.#timer);
    for (const timers of [own.impatient, own.patient]) timers.stop();
    for (const end of this.#ends.keys()) end.stop?.();
  }

  /**
   * It goes on. As in a process that was stopped, the ends of leases come first, then the input that
   * has arrived, in order, then the other timers.
   */
  go(): void {
    const own = this.#stopped;
    if (!own) return;
    own.impatient.go();
    this.#stopped = null;
    for (const end of this.#ends.keys()) end.go?.();
    this.look();
    for (const send of this.#output.splice(0)) send();
    void this.#afterInput(() => own.patient.go());
  }

  /**
   * After the turns that `look` has asked for, and the replies to what was sent meanwhile: a script
   * that Redis does not know is sent twice.
   */
  async #afterInput(go: () => void): Promise<void> {
    underWay++;
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    underWay--;
    if (!this.#stopped) detached(go);
  }

  /** Its connections break, and there are no others until `mend()`. */
  cut(): void {
    if (this.#isDead || this.#isCut) return;
    this.#isCut = true;
    for (const [end, close] of this.#ends) {
      close();
      this.#receive(() => end.lose());
    }
    this.#hasten(0);
  }

  mend(): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    for (const end of this.#ends.keys()) this.#receive(() => end.restore());
  }

  /** Nothing of it reaches Redis any more, and its connections are closed. */
  die(): void {
    this.#isDead = true;
    for (const close of this.#ends.values()) close();
    this.#input.length = 0;
    clearTimeout(this.#timer);
    // The code of the test goes on.
    this.go();
  }
}

/**
 * Resolves when all replies and messages have arrived, with their consequences: what arrives last
 * may put off a command to the end of its turn, so a second turn must be quiet too.
 */
export async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 2; quiet = underWay > 0 ? 0 : quiet + 1) await nextTurn();
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
