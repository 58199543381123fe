import { Redis } from "ioredis";
import { onTestFinished } from "vitest";

/** All rights of the forger. */
const RULES = ["resetkeys", "~other:*", "resetchannels", "&*", "-@all", "+publish", "+pubsub|channels"];

/**
 * A Redis user that may publish and list channels, and touches no key of a lock: such as another
 * application on the same server.
 */
export class Forger {
  readonly #redis: Redis;

  private constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** `admin`: makes the user; the connection is closed after the test. */
  static async start(admin: Redis): Promise<Forger> {
    await admin.call("ACL", "SETUSER", "other", "on", ">secret", ...RULES);
    const { host = "", port = 0 } = admin.options;
    const redis = new Redis({
      host,
      port,
      username: "other",
      password: "secret",
      enableReadyCheck: false,
      disableClientInfo: true,
    });
    onTestFinished(() => redis.disconnect());
    return new Forger(redis);
  }

  /** The channels that lock clients are subscribed to. */
  async channels(pattern = "holdfast:client:*"): Promise<string[]> {
    return (await this.#redis.pubsub("CHANNELS", pattern)) as string[];
  }

  /** Publishes all of this on a channel; returns how often it was received. */
  async publish(channel: string, messages: readonly string[]): Promise<number> {
    const counts = await Promise.all(messages.map((message) => this.#redis.publish(channel, message)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Publishes another text ten times every 5 ms, for that long: `0`, `1`, `2` … */
  async flood(channel: string, ms: number): Promise<void> {
    const end = performance.now() + ms;
    for (let said = 0; performance.now() < end; said += 10) {
      await this.publish(
        channel,
        Array.from({ length: 10 }, (_, i) => `${said + i}`),
      );
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

/**
 * Guesses of the ids of this client's first fifty holds, by everything that is known from outside.
 */
export function guesses(clientId: string): string[] {
  return Array.from({ length: 50 }, (_, i) => [
    `${clientId}:${i + 1}`,
    `${clientId}:${(i + 1).toString(36).padStart(8, "0")}${"0".repeat(13)}`,
    `${clientId}:${(i + 1).toString(36).padStart(8, "0")}`,
  ])
    .flat()
    .flatMap((guess) => [guess, `holdfast:client:${guess}`]);
}

/** The id of the client that listens on a channel. */
export const clientOf = (channel: string): string =>
  channel.replace(/^holdfast:client:/, "").replace(/:\{.*\}$/, "");

/** A grant of a lock, as the scripts publish it by default. */
export function grant(
  key: string,
  hold: string,
  { token = "1800000000000000", at = `${Date.now() * 1_000}`, ttl = "80000" } = {},
): string {
  return `grant ${token} ${at} ${ttl} 0 ${hold} ${key}`;
}
