import { clocks } from "../../util/clock.ts";
import { detached } from "../../util/detached.ts";
import { setImmediate } from "../../util/real-timers.ts";
import type { End, Network, Wire } from "./memory-link.ts";
import { MemoryRedis } from "./memory-redis.ts";

/** Replies and messages that no client has received yet. All test locks of a process share its clock. */
let underWay = 0;

/**
 * The way from test locks to their Redis in memory. Redis runs a command within `send`, as if it had
 * read it from the socket at once. Its reply and its messages arrive in later turns of the event
 * loop, in order, and outside any caller's asynchronous context.
 */
export class TestNetwork implements Network {
  readonly name = "the memory of this process:6379";
  readonly redis = new MemoryRedis(() => clocks.wall.now() * 1_000);

  connect(_: End, closed: () => void): Wire {
    let isOpen = true;
    return {
      toServer: (work) => work(),
      toClient: (work) => {
        underWay++;
        detached(() =>
          setImmediate(() => {
            underWay--;
            if (isOpen) work();
          }),
        );
      },
      close: () => {
        isOpen = false;
        closed();
      },
    };
  }
}

/**
 * Resolves when all replies and messages have arrived, with their consequences: what arrives last
 * may put off a command to the end of its turn, so a second turn must be quiet too.
 */
export async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 2; quiet = underWay > 0 ? 0 : quiet + 1)
    await new Promise<void>((resolve) => setImmediate(resolve));
}
