import { describe, expect, it } from "vitest";
import { hasOneSlotPerLock, Keys } from "../../src/redis/keys.ts";
import { SlotKeys, slotOf } from "../../src/util/slots.ts";

describe("hash slots", () => {
  // As CLUSTER KEYSLOT answers.
  it.each([
    ["123456789", 12739],
    ["foo", 12182],
    ["{foo}:queue", 12182],
    ["a{foo}b{bar}", 12182],
    ["foo{}{bar}", 8363],
    ["foo{{bar}}zap", 4015],
    ["é🔒", 3673],
  ])("%s has slot %i", (key, slot) => expect(slotOf(key)).toBe(slot));

  it("every slot has a clock and a channel of its own, with any prefix", () => {
    for (const prefix of ["", "app:", "a{b"]) {
      const keys = new SlotKeys((tag) => `${prefix}holdfast:clock:{${tag}}`);
      const all = new Set(Array.from({ length: 16_384 }, (_, slot) => slotOf(keys.of(slot))));
      expect(all.size, prefix).toBe(16_384);
    }
  });

  it.each(["", "app:", "{app}:", "a{b", "a}b{"])(
    "the keys of a lock with the prefix '%s' share a slot",
    (prefix) => {
      expect(hasOneSlotPerLock(prefix)).toBe(true);
      const keys = new Keys(prefix, true);
      const channel = keys.channels("host:1:abc");
      for (const name of ["order:42", "{x}", "a{}b", "}{", "%"]) {
        const { lock, queue, clients, clock } = keys.of(name);
        const slots = [lock, queue, clients, clock].map((key) => slotOf(prefix + key));
        expect(new Set([...slots, slotOf(channel(name))]).size, name).toBe(1);
        expect(keys.name(prefix + lock)).toBe(name);
        expect(slotOf(prefix + keys.fence(name)), name).toBe(keys.slot(name));
      }
    },
  );

  it("an empty tag in the prefix would spread them", () => expect(hasOneSlotPerLock("a{}b:")).toBe(false));

  it.each(["a{b", "a{}b", "a}b"])("Redisson's keys of '%s' have several", (name) => {
    expect(new Keys("", true).fitsRedisson(name)).toBe(false);
    expect(new Keys("", false).fitsRedisson(name)).toBe(true);
  });

  it.each(["", "app:", "{app}:"])("Redisson's keys with the prefix '%s' have one", (prefix) => {
    expect(new Keys(prefix, true).fitsRedisson("order:42")).toBe(true);
  });

  it.each(["a{b", "a}", "a{}"])("Redisson's keys with the prefix '%s' have several", (prefix) => {
    expect(new Keys(prefix, true).fitsRedisson("order:42")).toBe(false);
  });

  it.each(["a", "{a}b", "x{a}"])("Redisson's keys of '%s' have one", (name) =>
    expect(new Keys("", true).fitsRedisson(name)).toBe(true),
  );
});
