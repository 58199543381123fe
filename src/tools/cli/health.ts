import pTimeout from "p-timeout";
import { type Link, linkTo } from "../../inside.ts";
import { memoryTrouble } from "../ui/memory.ts";
import { ServerState } from "../ui/server-state.ts";
import type { Connected } from "./connection.ts";
import { showDuration } from "./durations.ts";
import type { Output } from "./output.ts";

/** A round trip above this, in ms, is worth investigating. */
export const SLOW = 50;
/** The same of the first answer, which includes connecting. */
const SLOW_FIRST = 1_000;
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

  get isSlow(): boolean {
    return (this.#roundTrip ?? 0) > SLOW;
  }

  /** As far as is known, the worst first. */
  get facts(): readonly Fact[] {
    const memory = memoryTrouble(this.#server?.memory ?? null);
    const facts: Fact[] = [];
    if (memory) facts.push({ isBad: memory.isFull, text: `${memory.title}: ${memory.text}.` });
    if (this.isSlow)
      facts.push({
        isBad: false,
        text: `Redis is slow: a round trip takes ${showDuration(this.#roundTrip)}.`,
      });
    return facts;
  }

  async #ask(): Promise<void> {
    // The first trip may connect.
    let least = await this.#trip();
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
    try {
      await this.#link?.command(["TIME"]); // a user with the rights of a lock may send it
      return performance.now() - since;
    } catch {
      return null;
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
    for (const { text } of health.facts) output.say(text);
    const { firstAnswer } = connected;
    if (!health.isSlow && firstAnswer > SLOW_FIRST)
      output.say(`Redis is slow: its first answer took ${showDuration(firstAnswer)}.`);
  };
}
