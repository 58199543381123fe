import pTimeout from "p-timeout";
import { type Link, linkTo } from "../../inside.ts";
import { memoryTrouble } from "../ui/memory.ts";
import { ServerState } from "../ui/server-state.ts";
import type { Connected } from "./connection.ts";
import { showDuration } from "./durations.ts";
import type { Output } from "./output.ts";

/** A round trip above this, in ms, is worth investigating. */
export const SLOW = 50;
/** The same of the first answer, which includes connecting, and of one that has not come yet. */
const LATE = 1_000;
/** The shortest of so many counts: the first one may connect, and this program may be late. */
const TRIPS = 4;
/** ms that a command waits for this after its own work. */
const PATIENCE = 2_000;

/** What is wrong with Redis, in a sentence. */
interface Fact {
  readonly isBad: boolean;
  readonly text: string;
}

/**
 * Whether Redis is full or slow. Nothing is said of what its user may not ask, nor of the memory of
 * a Cluster, which has many servers.
 */
export class Health {
  readonly #link: Link | null;
  readonly #server: ServerState | null;
  /** ms; null: not known. */
  #roundTrip: number | null = null;
  /** Since when an answer is awaited, on the monotonic clock; null: none is. */
  #awaited: number | null = null;
  #asked: Promise<void> | null = null;

  constructor({ redis }: Pick<Connected, "redis">) {
    this.#link = linkTo(redis);
    this.#server = this.#link && !this.#link.nodes ? new ServerState(this.#link) : null;
  }

  /** Never rejects, and may wait for long while Redis does not answer. */
  refresh(): Promise<void> {
    this.#asked ??= this.#ask().finally(() => {
      this.#asked = null;
    });
    return this.#asked;
  }

  /** How slow it is, in words; null: it is not, or that is not known. */
  get slowness(): string | null {
    const silence = this.#awaited === null ? 0 : performance.now() - this.#awaited;
    if (silence > LATE && silence > (this.#roundTrip ?? 0)) return `no answer for ${showDuration(silence)}`;
    return this.#isSlow ? `a round trip takes ${showDuration(this.#roundTrip)}` : null;
  }

  get #isSlow(): boolean {
    return (this.#roundTrip ?? 0) > SLOW;
  }

  /** Redis has answered on another connection: this one may still wait to reconnect. */
  answered(): void {
    this.#awaited = null;
  }

  /** As far as is known, the worst first. */
  get facts(): readonly Fact[] {
    const memory = memoryTrouble(this.#server?.memory ?? null);
    const facts: Fact[] = [];
    if (memory) facts.push({ isBad: memory.isFull, text: `${memory.title}: ${memory.text}.` });
    const { slowness } = this;
    if (slowness !== null) facts.push({ isBad: false, text: `Redis is slow: ${slowness}.` });
    return facts;
  }

  async #ask(): Promise<void> {
    // The first trip may connect.
    let least = await this.#trip();
    if (this.#isSlow) this.#roundTrip = least;
    await this.#server?.refresh();
    for (let i = 1; i < TRIPS && least !== null && least > SLOW; i++) {
      const took = await this.#trip();
      least = took && Math.min(least, took);
      this.#roundTrip = least;
    }
    this.#roundTrip = least;
  }

  /** ms; null: Redis did not answer. */
  async #trip(): Promise<number | null> {
    const since = performance.now();
    this.#awaited = since;
    try {
      await this.#link?.command(["TIME"]); // a user with the rights of a lock may send it
      return performance.now() - since;
    } catch {
      return null;
    } finally {
      this.#awaited = null;
    }
  }
}

/**
 * For a command that reads once: asks while the command reads. The returned function says on stderr
 * what is wrong, because the data that other programs read from stdout is about locks alone.
 */
export function healthReport(connected: Connected, output: Output): () => Promise<void> {
  const health = new Health(connected);
  const asked = health.refresh();
  return async () => {
    await pTimeout(asked, { milliseconds: PATIENCE, fallback: () => {} });
    const { facts, slowness } = health;
    for (const { text } of facts) output.say(text);
    const { firstAnswer } = connected;
    if (slowness === null && firstAnswer > LATE)
      output.say(`Redis is slow: its first answer took ${showDuration(firstAnswer)}.`);
  };
}
