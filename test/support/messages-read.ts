import { vi } from "vitest";
import type { Party } from "./fixture.ts";

/** The messages that a party's own subscriber has read, which it is to open from now on. */
export function messagesRead({ redis }: Party): string[] {
  const heard: string[] = [];
  const duplicate = redis.duplicate.bind(redis);
  vi.spyOn(redis, "duplicate").mockImplementation((options) =>
    duplicate(options).on("message", (_, message) => heard.push(message)),
  );
  return heard;
}
