import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { Keys } from "../../src/redis/keys.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { askerOf, decodeMessage } from "../../src/redis/messages.ts";

/**
 * The reaction of a client to the recall of its cached lock: the lock is idle, it is in use, or no
 * answer.
 */
export type Manners = "idle" | "busy" | "silent";

/**
 * A client that caches a lock, as far as Redis and other clients can see, and sends the messages
 * that a test chooses.
 */
export class FakeKeeper {
  readonly id = `fake:1:${Math.random().toString(16).slice(2, 10).padEnd(16, "0")}`;
  /** The messages that it received, the latest last. */
  readonly recalls: string[] = [];
  manners: Manners;
  /** For the lock that it caches. */
  token = 1_700_000_000_000_000;
  readonly #redis: Redis;
  readonly #ears: Redis;

  private constructor(url: string, manners: Manners) {
    this.manners = manners;
    this.#redis = new Redis(url);
    this.#ears = new Redis(url);
    onTestFinished(() => {
      this.#redis.disconnect();
      this.#ears.disconnect();
    });
  }

  static async start(url: string, manners: Manners): Promise<FakeKeeper> {
    const keeper = new FakeKeeper(url, manners);
    keeper.#ears.on("message", (_, text: string) => void keeper.#heard(text));
    await keeper.#ears.subscribe(keeper.#channel);
    return keeper;
  }

  get #channel(): string {
    return `holdfast:client:${this.id}`;
  }

  get hold(): string {
    return `${this.#channel}:00000001abcdefghijklm`;
  }

  /** Makes it cache the lock of this name, for this many ms; `told`: the digit of the lock. */
  async keep(name: string, told: 0 | 1 | 2 = 2, ttl = 30_000): Promise<void> {
    await this.#redis.set(
      new Keys("", false).of(name).lock,
      `1${told} ${this.token} ${this.token} ${this.hold}`,
      "PX",
      ttl,
    );
  }

  /** Gives up the lock of this name. */
  giveUp(name: string): Promise<unknown> {
    return this.#release(new Keys("", false).of(name).lock);
  }

  #release(key: string): Promise<unknown> {
    const keys = [key, `${key}:queue`, `${key}:clients`, "holdfast:clock"];
    return this.#redis.eval(handoffLua.release.lua, keys.length, ...keys, this.hold, this.token);
  }

  /** Sends this to a client, including messages that it should not send. */
  tell(client: string, message: string): Promise<number> {
    return this.#redis.publish(`holdfast:client:${client}`, message);
  }

  async #heard(text: string): Promise<void> {
    this.recalls.push(text);
    const message = decodeMessage(text);
    if (message?.is !== "recall" || message.hold !== this.hold || this.manners === "silent") return;
    const { nonce, isQuestion, key } = message;
    if (this.manners === "idle" && !isQuestion) await this.#release(key);
    else if (nonce !== null) await this.tell(askerOf(nonce) ?? "", `${this.manners} ${nonce} ${key}`);
  }
}
