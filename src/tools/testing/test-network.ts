import { clocks } from "../../util/clock.ts";
import { MemoryRedis } from "./memory-redis.ts";

/** A Redis in memory, and the processes that reach it. */
export class TestNetwork {
  readonly name = "the memory of this process:6379";
  readonly redis = new MemoryRedis(() => clocks.wall.now() * 1_000);
}
